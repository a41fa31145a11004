import { type Endpoint, endpointAddress } from '../../../contract/endpoint.js';
import type { PodRecord } from './objects.js';

/** Time for which an endpoint that is not ready keeps its slot and its blocks in the index. */
export const UNREADY_KEPT_MS = 60_000;

/** Differences from before. */
export interface EndpointChange {
  /** Endpoints that are new or differ, the oldest pod first. */
  readonly set: readonly Endpoint[];
  /** Ids of endpoints that are gone. */
  readonly removed: readonly string[];
}

export interface PodChange {
  /** Pods that are new or differ. */
  readonly set: readonly PodRecord[];
  /** UIDs of pods that are gone. */
  readonly removed: readonly string[];
}

interface Entry {
  readonly pod: PodRecord;
  readonly endpoint: Endpoint;
  /** Position among the endpoints of the pod. */
  readonly rank: number;
  readonly address: string;
}

type Dated = { readonly createdMs: number; readonly namespace: string; readonly name: string };

export const byName = (a: Dated, b: Dated) => compare(a.namespace, b.namespace) || compare(a.name, b.name);
/** Oldest first; among equals the order of llm-d-router is random. */
export const byAge = (a: Dated, b: Dated) => a.createdMs - b.createdMs || byName(a, b);

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

const byPodAge = (a: Entry, b: Entry) => byAge(a.pod, b.pod) || compare(a.pod.uid, b.pod.uid) || a.rank - b.rank;

/**
 * The endpoints of a set of pods. A change of the pods costs as much as the pods that have changed; the result is that
 * of the pods alone, whatever the changes before.
 */
export class PodEndpoints {
  readonly #ports: readonly number[];
  /** By UID of their pod. */
  readonly #entries = new Map<string, readonly Entry[]>();
  readonly #byId = new Map<string, readonly Entry[]>();
  /** Entries that take requests. A pod's IP is given to another one after its end: the youngest pod has the address. */
  readonly #byAddress = new Map<string, readonly Entry[]>();
  /** Addresses with more than one entry. */
  readonly #contested = new Set<string>();
  /** The endpoints, by id. */
  readonly #shown = new Map<string, Entry>();
  /** Wall times at which the endpoints of pods that are not ready end, by UID. */
  readonly #ends = new Map<string, number>();
  readonly #portNotes = new Map<string, readonly string[]>();

  /** @param nowMs wall time in milliseconds */
  constructor(pods: readonly PodRecord[], ports: readonly number[], nowMs: number) {
    this.#ports = ports;
    this.#take({ set: pods, removed: [] }, nowMs);
  }

  /** The endpoints of the oldest pod first, those of one pod in the order of its ports. */
  endpoints(): Endpoint[] {
    return [...this.#shown.values()].sort(byPodAge).map(({ endpoint }) => endpoint);
  }

  /** Wall time at which the endpoints of the same pods become others; undefined = never. */
  get nextMs(): number | undefined {
    return this.#ends.size === 0 ? undefined : Math.min(...this.#ends.values());
  }

  /** Left-out and ignored parts, one line each. */
  notes(): string[] {
    const contested = [...this.#contested].flatMap((address) => {
      const owner = this.#owner(address)!;
      const others = this.#byAddress.get(address)!.filter((entry) => entry !== owner);
      const why = `${address} is the address of ${owner.endpoint.id} too`;
      return others.map(({ endpoint }) => `endpoint ${endpoint.id} is left out: ${why}`);
    });
    return [...[...this.#portNotes.values()].flat(), ...contested].sort();
  }

  /** Takes over changed pods, and what the time has changed. */
  change(change: PodChange, nowMs: number): EndpointChange {
    const { set, removed } = this.#take(change, nowMs);
    return { set: set.sort(byPodAge).map(({ endpoint }) => endpoint), removed };
  }

  #take({ set, removed }: PodChange, nowMs: number): Settled {
    const touched = new Set<string>();
    for (const uid of removed) this.#drop(uid, touched);
    for (const pod of set) {
      this.#drop(pod.uid, touched);
      this.#add(pod, nowMs, touched);
    }
    for (const [uid, endMs] of this.#ends) if (endMs <= nowMs) this.#drop(uid, touched);
    return this.#settle(touched);
  }

  #add(pod: PodRecord, nowMs: number, touched: Set<string>): void {
    const { endpoints, notes } = endpointsOf(pod, this.#ports);
    if (!pod.ready && pod.unreadySinceMs !== undefined && !pod.deleting && endpoints.length > 0) {
      const endMs = pod.unreadySinceMs + UNREADY_KEPT_MS;
      if (endMs <= nowMs) return;
      this.#ends.set(pod.uid, endMs);
    }
    if (notes.length > 0) this.#portNotes.set(pod.uid, notes);
    const entries = endpoints.map((endpoint, rank) => ({ pod, endpoint, rank, address: endpointAddress(endpoint) }));
    this.#entries.set(pod.uid, entries);
    for (const entry of entries) {
      const { id, draining } = entry.endpoint;
      this.#byId.set(id, withEntry(this.#byId.get(id), entry));
      touched.add(id);
      if (draining !== true)
        this.#setOwners(entry.address, withEntry(this.#byAddress.get(entry.address), entry), touched);
    }
  }

  #drop(uid: string, touched: Set<string>): void {
    const entries = this.#entries.get(uid);
    if (entries === undefined) return;
    this.#entries.delete(uid);
    this.#ends.delete(uid);
    this.#portNotes.delete(uid);
    for (const entry of entries) {
      const { id, draining } = entry.endpoint;
      const left = this.#byId.get(id)!.filter((other) => other !== entry);
      if (left.length === 0) this.#byId.delete(id);
      else this.#byId.set(id, left);
      touched.add(id);
      if (draining === true) continue;
      this.#setOwners(
        entry.address,
        this.#byAddress.get(entry.address)!.filter((other) => other !== entry),
        touched,
      );
    }
  }

  /** Sets the entries of an address; the endpoints of all of them have to be looked at again. */
  #setOwners(address: string, entries: readonly Entry[], touched: Set<string>): void {
    for (const { endpoint } of entries) touched.add(endpoint.id);
    if (entries.length === 0) this.#byAddress.delete(address);
    else this.#byAddress.set(address, entries);
    if (entries.length > 1) this.#contested.add(address);
    else this.#contested.delete(address);
  }

  #owner(address: string): Entry | undefined {
    return youngest(this.#byAddress.get(address) ?? NONE);
  }

  #settle(touched: ReadonlySet<string>): Settled {
    const set: Entry[] = [];
    const removed: string[] = [];
    for (const id of touched) {
      const next = this.#candidate(this.#byId.get(id) ?? NONE);
      const before = this.#shown.get(id);
      if (next === undefined) {
        if (this.#shown.delete(id)) removed.push(id);
        continue;
      }
      this.#shown.set(id, next);
      if (!sameEndpoint(before?.endpoint, next.endpoint)) set.push(next);
    }
    return { set, removed };
  }

  /** The entry of an endpoint id: the youngest pod that drains or owns its address. */
  #candidate(entries: readonly Entry[]): Entry | undefined {
    const counts = (entry: Entry) => entry.endpoint.draining === true || this.#owner(entry.address) === entry;
    const [only] = entries;
    if (only !== undefined && entries.length === 1) return counts(only) ? only : undefined;
    return youngest(entries.filter(counts));
  }
}

/**
 * Makes the endpoints of many pods, some in each turn of the event loop, and gives them to `done` in the last one. Few
 * pods are done before it returns.
 */
export function makePodEndpoints(
  pods: readonly PodRecord[],
  ports: readonly number[],
  { nowMs, perTurn }: { readonly nowMs: number; readonly perTurn: number },
  done: (endpoints: PodEndpoints) => void,
): void {
  const endpoints = new PodEndpoints(pods.slice(0, perTurn), ports, nowMs);
  const takeFrom = (from: number) => {
    if (from >= pods.length) done(endpoints);
    else setImmediate(takeTurn, from);
  };
  const takeTurn = (from: number) => {
    endpoints.change({ set: pods.slice(from, from + perTurn), removed: [] }, nowMs);
    takeFrom(from + perTurn);
  };
  takeFrom(perTurn);
}

interface Settled {
  readonly set: Entry[];
  readonly removed: readonly string[];
}

const NONE: readonly Entry[] = [];

function withEntry(entries: readonly Entry[] | undefined, entry: Entry): readonly Entry[] {
  return entries === undefined ? [entry] : [...entries, entry];
}

function youngest(entries: readonly Entry[]): Entry | undefined {
  if (entries.length < 2) return entries[0];
  return entries.reduce((a, b) => (byPodAge(a, b) > 0 ? a : b));
}

interface MadeEndpoints {
  readonly ports: readonly number[];
  readonly endpoints: readonly Endpoint[];
  readonly notes: readonly string[];
}

/** A pod's endpoints by its record, which is another object after every change: most pods are as they were. */
const known = new WeakMap<PodRecord, MadeEndpoints>();

/** One endpoint for each active port, whether or not they take requests. */
function endpointsOf(pod: PodRecord, ports: readonly number[]): MadeEndpoints {
  const before = known.get(pod);
  if (before?.ports === ports) return before;
  const made = { ports, ...makeEndpoints(pod, ports) };
  known.set(pod, made);
  return made;
}

function makeEndpoints(pod: PodRecord, ports: readonly number[]): Omit<MadeEndpoints, 'ports'> {
  const { ip, activePorts } = pod;
  if (ip === undefined || pod.ended) return { endpoints: [], notes: [] };
  const draining = !pod.ready || pod.deleting || pod.drainMark;
  const endpoints = ports.flatMap((port, rank): Endpoint[] => {
    if (activePorts !== undefined && !activePorts.includes(port)) return [];
    const name = `${pod.name}-rank-${rank}`;
    const id = `${pod.namespace}/${name}`;
    const { name: podName, namespace, labels } = pod;
    return [{ id, name, podName, namespace, address: ip, port, labels, incarnation: incarnation(pod, port), draining }];
  });
  return { endpoints, notes: portNotes(pod, ports) };
}

/**
 * Pod and container: an engine that was restarted inside its pod has an empty cache, a restarted sidecar changes
 * nothing.
 */
function incarnation({ uid, containers }: PodRecord, port: number): string {
  const owners = containers.filter(({ ports }) => ports.includes(port));
  return [uid, ...(owners.length > 0 ? owners : containers).map(({ id }) => id)].join(' ');
}

function portNotes({ namespace, name, activePorts, wrongPorts }: PodRecord, ports: readonly number[]): string[] {
  const others = (activePorts ?? []).filter((port) => !ports.includes(port)).map(String);
  const ignored = [...others, ...wrongPorts];
  if (ignored.length === 0) return [];
  return [`pod ${namespace}/${name}: active-ports: ${ignored.join(', ')}: not among the pool's ports, ignored`];
}

/** Whether two states of an endpoint are the same to all that follow it. */
export function sameEndpoint(a: Endpoint | undefined, b: Endpoint): boolean {
  if (a === b) return true;
  if (a === undefined) return false;
  const same = a.address === b.address && a.port === b.port && a.incarnation === b.incarnation;
  return same && a.draining === b.draining && sameLabels(a.labels, b.labels);
}

function sameLabels(a: Endpoint['labels'], b: Endpoint['labels']): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}
