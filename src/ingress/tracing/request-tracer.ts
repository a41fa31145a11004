import type { SamplerSettings } from '../../contract/observe-settings.js';
import type { HeaderMap } from '../codec/header-map.js';
import { RequestTrace } from './request-trace.js';
import { TraceIds } from './trace-ids.js';
import { parseTraceParent, type TraceParent } from './trace-parent.js';
import type { TraceRecord } from './trace-record.js';

/** Result for a request that begins a trace and is not sampled. */
export const UNSAMPLED_ROOT = 'unsampled root';

/** Length of a header of version 00, and the places of its dashes. */
const LENGTH = 55;
const DASHES = [2, 35, 52] as const;
const ZERO = 0x30;
const DASH = 0x2d;
const LETTER_A = 0x61;

/**
 * Chooses the requests that are traced. One for each shard; costs a request that is not sampled some tens of
 * nanoseconds.
 */
export class RequestTracer {
  readonly #sampler: SamplerSettings;
  readonly #sink: (record: TraceRecord) => void;
  readonly #now: () => number;
  readonly #ids: TraceIds;

  /** @param now clock of the streams, in milliseconds */
  constructor(sampler: SamplerSettings, sink: (record: TraceRecord) => void, now: () => number) {
    this.#sampler = sampler;
    this.#sink = sink;
    this.#now = now;
    this.#ids = new TraceIds(sampler.ratio);
  }

  /**
   * Decides about a request.
   * @returns undefined = it is not traced, and its headers remain unchanged
   */
  begin(headers: HeaderMap, startMs: number): RequestTrace | typeof UNSAMPLED_ROOT | undefined {
    const { parentBased, propagates } = this.#sampler;
    const given = propagates ? headers.find('traceparent') : -1;
    if (given < 0) {
      if (this.#ids.draw()) return this.#trace(headers, startMs, undefined);
      return propagates ? UNSAMPLED_ROOT : undefined;
    }
    if (parentBased && isUnsampled(headers, given)) return undefined;
    const parent = parseTraceParent(headers.text(given));
    if (parent === undefined) return this.#ids.draw() ? this.#trace(headers, startMs, undefined) : UNSAMPLED_ROOT;
    const sampled = parentBased ? parent.sampled : this.#ids.takes(parent.traceId);
    return sampled ? this.#trace(headers, startMs, parent) : undefined;
  }

  /** Header mutation for the model server; undefined = the client's own header goes on. Valid until the next call. */
  header(trace: RequestTrace | typeof UNSAMPLED_ROOT | undefined): Buffer | undefined {
    if (trace === UNSAMPLED_ROOT) return this.#ids.unsampledHeader();
    return this.#sampler.propagates ? trace?.header : undefined;
  }

  #trace(headers: HeaderMap, startMs: number, parent: TraceParent | undefined): RequestTrace {
    const ids = this.#ids;
    return new RequestTrace({
      names: {
        traceId: parent?.traceId ?? ids.trace(),
        spanId: ids.span(),
        parentId: parent?.spanId,
        orchestrationId: ids.span(),
      },
      headers,
      startMs,
      epochMs: Date.now() - this.#now(),
      sink: this.#sink,
    });
  }
}

/**
 * Whether a header has the form of version 00 and says that its trace is not sampled. Most requests have that header,
 * so no text is made of it.
 */
function isUnsampled(headers: HeaderMap, header: number): boolean {
  if (headers.length(header) !== LENGTH) return false;
  if (headers.byte(header, 0) !== ZERO || headers.byte(header, 1) !== ZERO) return false;
  for (const at of DASHES) if (headers.byte(header, at) !== DASH) return false;
  const flags = headers.byte(header, LENGTH - 1);
  // The last bit of a digit's code is that of its value; `a` to `f` have it inverted.
  return flags >= LETTER_A ? (flags & 1) === 1 : (flags & 1) === 0;
}
