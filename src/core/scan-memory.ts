import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';
import { type PromptChain, RequestScanner } from './request-scanner.js';
import { ResponseScanner } from './response-scanner.js';

/** Writes the chain hashes of scanned prompts where the decisions of one pool read them. */
export interface ScannedChains {
  /** As RequestScanner.chain. */
  chain(id: number, model: string): PromptChain;
}

/**
 * Scans of requests and answers on one thread, in the memory of one pool. Other pools of the thread can use them: a body that
 * is scanned before its pool is known is not scanned again, and a thread touches one set of scan states whatever their number.
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

  /** Whether the hashes of these scans are those of another pool's prompts: the seed is the same, and as many blocks fit. */
  serves(core: CoreInstance): boolean {
    return seedOf(core) === seedOf(this.#core) && core.sizes.chainBlocks >= this.#core.sizes.chainBlocks;
  }

  /** Chains for the decisions of a pool. @param core attached to the memory of a pool that `serves` accepts */
  chainsFor(core: CoreInstance): ScannedChains {
    return core === this.#core ? this.requests : new CopiedChains(this.requests, this.#core, core);
  }
}

/** Copies the hashes from the memory of the scans to that of the decisions: 8 bytes for each block. */
class CopiedChains implements ScannedChains {
  readonly #scanner: RequestScanner;
  readonly #from: CoreInstance;
  readonly #to: CoreInstance;
  readonly #source: number;
  readonly #target: number;

  constructor(scanner: RequestScanner, from: CoreInstance, to: CoreInstance) {
    this.#scanner = scanner;
    this.#from = from;
    this.#to = to;
    this.#source = (from.call.hashesAddress() >>> 0) >>> 2;
    this.#target = (to.call.hashesAddress() >>> 0) >>> 2;
  }

  chain(id: number, model: string): PromptChain {
    const chain = this.#scanner.chain(id, model);
    const words = 2 * (chain.blocks + (chain.tail ? 1 : 0));
    const { u32: source } = this.#from;
    const { u32: target } = this.#to;
    // TypedArray.set copies between shared memories in atomic bytes.
    for (let i = 0; i < words; i++) target[this.#target + i] = source[this.#source + i]!;
    return chain;
  }
}

function seedOf({ view }: CoreInstance): bigint {
  return view.getBigUint64(CORE.HEADER + CORE.HEADER_HASH_SEED_LOW, true);
}
