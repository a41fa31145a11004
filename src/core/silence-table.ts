import { CORE } from './core-names.js';
import type { CoreInstance } from './memory.js';
import type { AnswerSign } from './types.js';

/** A request in flight that is evidence for or against its endpoint. Times are milliseconds of the pool clock. */
export interface HeardRequest {
  /** Entry in the ledger + 1. */
  readonly ticket: number;
  readonly slot: number;
  readonly chargedMs: number;
  /** Milliseconds of the last output; 0 = none so far. */
  readonly heardMs: number;
  readonly expects: Exclude<AnswerSign, 'nothing'>;
  /** Most output tokens that it allows; 0 = unknown. */
  readonly outputLimit: number;
  /** Tokens of its prompt; 0 = the picker has not seen it. */
  readonly promptTokens: number;
  readonly uncachedTokens: number;
  /** Uncached tokens before it, on its endpoint at the decision. */
  readonly tokensAhead: number;
  readonly isProbe: boolean;
}

/** `busy`: call again. `in`: the bound on ejections or the setting keeps the endpoint among the picks. */
export type SilenceWritten = 'busy' | 'out' | 'in';

const WRITTEN: Readonly<Record<number, SilenceWritten>> = {
  [CORE.SILENCE_BUSY]: 'busy',
  [CORE.SILENCE_OUT]: 'out',
  [CORE.SILENCE_IN]: 'in',
};

const SIGNS: Readonly<Record<number, HeardRequest['expects']>> = {
  [CORE.EXPECTS_STREAM]: 'stream',
  [CORE.EXPECTS_END]: 'end',
  [CORE.EXPECTS_LATER]: 'later',
};

/** The control thread's view of hearings, and its judgements of silence. */
export class SilenceTable {
  readonly #core: CoreInstance;
  readonly #columns: number;

  constructor(core: CoreInstance) {
    this.#core = core;
    this.#columns = core.call.columnAddress(0) >>> 0;
  }

  /** Requests in flight from here that are evidence. Read without a lock. */
  requests(): HeardRequest[] {
    const { call, view } = this.#core;
    const at = call.outputAddress() >>> 0;
    const found: HeardRequest[] = [];
    for (let ticket = call.hearingNext(0) >>> 0; ticket !== 0; ticket = call.hearingNext(ticket) >>> 0) {
      const word = (offset: number) => view.getUint32(at + offset, true);
      const expects = SIGNS[word(CORE.HEARD_REQUEST_EXPECTS)];
      if (expects === undefined) continue;
      found.push({
        ticket,
        slot: word(CORE.HEARD_REQUEST_SLOT),
        chargedMs: view.getFloat64(at, true),
        heardMs: view.getFloat64(at + CORE.HEARD_REQUEST_HEARD, true),
        expects,
        outputLimit: word(CORE.HEARD_REQUEST_LIMIT),
        promptTokens: word(CORE.HEARD_REQUEST_PROMPT),
        uncachedTokens: word(CORE.HEARD_REQUEST_UNCACHED),
        tokensAhead: word(CORE.HEARD_REQUEST_AHEAD),
        isProbe: word(CORE.HEARD_REQUEST_PROBE) !== 0,
      });
    }
    return found;
  }

  /** Requests in flight from here. */
  inflight(slot: number): number {
    return Math.max(0, (this.#u32(CORE.COLUMN_INFLIGHT, slot) - this.#u32(CORE.COLUMN_PEER_REQUESTS, slot)) | 0);
  }

  /** Last output of the endpoint, milliseconds of the pool clock; 0 = none. */
  heardMs(slot: number): number {
    const { f64, sizes } = this.#core;
    return f64[((this.#columns + CORE.COLUMN_HEARD * sizes.endpoints * 4) >>> 3) + slot]!;
  }

  isSilent(slot: number): boolean {
    return this.#u32(CORE.COLUMN_SILENT, slot) !== 0;
  }

  /** Whether a probe of an endpoint that is out is under way. */
  isProbed(slot: number): boolean {
    return this.#u32(CORE.COLUMN_EJECTION, slot) === 2;
  }

  /** Whether the endpoint is out of the picks, for any reason. */
  isOut(slot: number): boolean {
    return this.#u32(CORE.COLUMN_EJECTION, slot) !== 0;
  }

  /** Writes that an endpoint is silent. */
  silence(slot: number, generation: number, nowMs: number): SilenceWritten {
    return WRITTEN[this.#core.call.endpointSilent(slot, generation, nowMs) >>> 0]!;
  }

  /** Takes a silent endpoint back, because output came. @returns false when it could not be written now */
  takeBack(slot: number, generation: number): boolean {
    return this.#core.call.endpointHeard(slot, generation) === 0;
  }

  /**
   * Puts off the probe after the present one.
   * @param over ticket of a present probe that counts as ended; undefined = it may still be answered
   */
  putOffProbe(slot: number, generation: number, over: number | undefined, untilMs: number): boolean {
    return this.#core.call.silenceProbed(slot, generation, over ?? 0, untilMs) === 0;
  }

  #u32(column: number, slot: number): number {
    return this.#core.u32[(this.#columns >>> 2) + column * this.#core.sizes.endpoints + slot]!;
  }
}
