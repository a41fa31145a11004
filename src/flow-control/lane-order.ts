import type { Lanes } from './lanes.js';
import { NONE, type RequestSlab } from './request-slab.js';

/** Order of the requests in a lane; the head is dispatched next. */
export interface LaneOrder {
  insert(lane: number, request: number): void;
  /** Removes a request at any position. */
  remove(lane: number, request: number): void;
}

/** Whether request `a` goes before `b`: by order, then by arrival. */
export function goesBefore(requests: RequestSlab, a: number, b: number): boolean {
  const difference = requests.order[a]! - requests.order[b]!;
  return difference < 0 || (!(difference > 0) && requests.sequence[a]! < requests.sequence[b]!);
}

/**
 * Orders that grow with the arrival: a linked list. A new request goes to the end. A returned one is inserted from the
 * nearer end, after the requests that arrived during its absence.
 */
export class ListOrder implements LaneOrder {
  readonly #requests: RequestSlab;
  readonly #lanes: Lanes;

  constructor(requests: RequestSlab, lanes: Lanes) {
    this.#requests = requests;
    this.#lanes = lanes;
  }

  insert(lane: number, request: number): void {
    const { head, tail } = this.#lanes;
    const requests = this.#requests;
    let before = tail[lane]!;
    if (before !== NONE && goesBefore(requests, request, head[lane]!)) before = NONE;
    else while (before !== NONE && goesBefore(requests, request, before)) before = requests.previous[before]!;
    const after = before === NONE ? head[lane]! : requests.next[before]!;
    requests.previous[request] = before;
    requests.next[request] = after;
    if (before === NONE) head[lane] = request;
    else requests.next[before] = request;
    if (after === NONE) tail[lane] = request;
    else requests.previous[after] = request;
  }

  remove(lane: number, request: number): void {
    const { head, tail } = this.#lanes;
    const { next, previous } = this.#requests;
    const before = previous[request]!;
    const after = next[request]!;
    if (before === NONE) head[lane] = after;
    else next[before] = after;
    if (after === NONE) tail[lane] = before;
    else previous[after] = before;
  }
}

/**
 * Any order: a pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986) whose links are fields of the requests. `child`
 * is the first child and `next` the next sibling. `previous` is the previous sibling or, for a first child, the parent.
 */
export class HeapOrder implements LaneOrder {
  readonly #requests: RequestSlab;
  readonly #lanes: Lanes;

  constructor(requests: RequestSlab, lanes: Lanes) {
    this.#requests = requests;
    this.#lanes = lanes;
  }

  insert(lane: number, request: number): void {
    const { head } = this.#lanes;
    this.#single(request);
    head[lane] = this.#meld(head[lane]!, request);
  }

  remove(lane: number, request: number): void {
    const { head } = this.#lanes;
    if (head[lane] === request) {
      head[lane] = this.#join(this.#requests.child[request]!);
      return;
    }
    this.#cut(request);
    head[lane] = this.#meld(head[lane]!, this.#join(this.#requests.child[request]!));
  }

  #single(request: number): void {
    const { next, previous, child } = this.#requests;
    next[request] = NONE;
    previous[request] = NONE;
    child[request] = NONE;
  }

  #cut(request: number): void {
    const { next, previous, child } = this.#requests;
    const before = previous[request]!;
    const after = next[request]!;
    if (child[before] === request) child[before] = after;
    else next[before] = after;
    if (after !== NONE) previous[after] = before;
  }

  /** Melds two roots into one heap; either may be NONE. */
  #meld(a: number, b: number): number {
    if (a === NONE) return b;
    if (b === NONE) return a;
    const { next, previous, child } = this.#requests;
    const top = goesBefore(this.#requests, b, a) ? b : a;
    const below = top === a ? b : a;
    const first = child[top]!;
    next[below] = first;
    if (first !== NONE) previous[first] = below;
    previous[below] = top;
    child[top] = below;
    next[top] = NONE;
    previous[top] = NONE;
    return top;
  }

  /** Joins a list of siblings into one heap: pairs from the left, then all pairs from the right. */
  #join(first: number): number {
    const { next, previous } = this.#requests;
    let pairs = NONE;
    let at = first;
    while (at !== NONE) {
      const partner = next[at]!;
      const rest = partner === NONE ? NONE : next[partner]!;
      next[at] = NONE;
      previous[at] = NONE;
      if (partner !== NONE) {
        next[partner] = NONE;
        previous[partner] = NONE;
      }
      const pair = this.#meld(at, partner);
      // Pairs are linked by `previous`, which a root does not need.
      previous[pair] = pairs;
      pairs = pair;
      at = rest;
    }
    let root = NONE;
    while (pairs !== NONE) {
      const before = previous[pairs]!;
      previous[pairs] = NONE;
      root = this.#meld(root, pairs);
      pairs = before;
    }
    return root;
  }
}
