import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';
import { type PromptChain, RequestScanner } from './request-scanner.js';
import { ResponseScanner } from './response-scanner.js';

/** Writes the chain hashes of scanned prompts where the decisions of one pool read them. */
export interface ScannedChains {
  /** As RequestScanner.chain. */
  chain(id: number, model: string): PromptChain;
  /** As RequestScanner.noteBeginning. */
  noteBeginning(id: number): void;
}

/**
 * Scans of requests and answers on one thread, in the memory of one pool. Other pools of the thread can use them: a
 * body is scanned once, even before its pool is known, and a thread touches one set of scan states for any number of
 * pools.
 */
export class ScanMemory {
  readonly requests: RequestScanner;
  readonly responses: ResponseScanner;
  readonly #core: CoreInstance;

  /** There may be one for each attached core (RequestScanner). */
  constructor(core: CoreInstance) {
    this.#core = core;
    this.requests = new RequestScanner(core);
    this.responses = new ResponseScanner(core);
  }

  /** Whether the hashes of these scans fit another pool's prompts: the seed is the same, and as many blocks fit. */
  serves(core: CoreInstance): boolean {
    return seedOf(core) === seedOf(this.#core) && core.sizes.chainBlocks >= this.#core.sizes.chainBlocks;
  }

  /** Chains for the decisions of a pool. @param core attached to the memory of a pool that `serves` accepts */
  chainsFor(core: CoreInstance): ScannedChains {
    return core === this.#core ? this.requests : new CopiedChains(this.requests, this.#core, core);
  }
}

/**
 * Copies what a chain writes from the memory of the scans to that of the decisions: 8 bytes for each block, and the
 * beginning of the prompt. TypedArray.set would copy between shared memories in atomic bytes.
 */
class CopiedChains implements ScannedChains {
  readonly #scanner: RequestScanner;
  readonly #source: Uint32Array;
  readonly #target: Uint32Array;
  readonly #from: ChainPlaces;
  readonly #to: ChainPlaces;

  constructor(scanner: RequestScanner, from: CoreInstance, to: CoreInstance) {
    this.#scanner = scanner;
    this.#source = from.u32;
    this.#target = to.u32;
    this.#from = placesOf(from);
    this.#to = placesOf(to);
  }

  chain(id: number, model: string): PromptChain {
    const chain = this.#scanner.chain(id, model);
    this.#copy('hashes', WORDS_OF_HASH * (chain.blocks + (chain.tail ? 1 : 0)));
    this.#copy('beginning', CORE.REQUEST_BEGINNING_BYTES >>> 2);
    return chain;
  }

  /** The chain of the tokens stands in the pool's memory, the text of the prompt in that of the scans. */
  noteBeginning(id: number): void {
    this.#scanner.noteBeginning(id);
    this.#copy('content', WORDS_OF_HASH);
    const { front, hashes } = this.#to;
    for (let i = 0; i < WORDS_OF_HASH; i++) this.#target[front + i] = this.#target[hashes + i]!;
  }

  #copy(place: keyof ChainPlaces, words: number): void {
    const [from, to] = [this.#from[place], this.#to[place]];
    for (let i = 0; i < words; i++) this.#target[to + i] = this.#source[from + i]!;
  }
}

const WORDS_OF_HASH = 2;

/** Places of a chain in a memory, as indices of 32-bit words. */
interface ChainPlaces {
  readonly hashes: number;
  readonly beginning: number;
  readonly content: number;
  readonly front: number;
}

function placesOf({ call }: CoreInstance): ChainPlaces {
  const request = call.requestAddress() >>> 0;
  return {
    hashes: (call.hashesAddress() >>> 0) >>> 2,
    beginning: (request + CORE.REQUEST_BEGINNING) >>> 2,
    content: (request + CORE.REQUEST_BEGINNING_CONTENT) >>> 2,
    front: (request + CORE.REQUEST_BEGINNING_FRONT) >>> 2,
  };
}

function seedOf({ view }: CoreInstance): bigint {
  return view.getBigUint64(CORE.HEADER + CORE.HEADER_HASH_SEED_LOW, true);
}
