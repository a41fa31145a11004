import type { RequestHeaders } from '../../scheduling/request-headers.js';
import { RequestTrace } from './request-trace.js';
import { TraceIds } from './trace-ids.js';
import { parseTraceParent, type TraceParent } from './trace-parent.js';
import type { TraceRecord } from './trace-record.js';

/** Which requests are traced. */
export interface SamplerSettings {
  /** Whether the sampled flag of the client's trace decides, where it has one. */
  readonly parentBased: boolean;
  /** Share of the other requests, from 0 to 1. */
  readonly ratio: number;
  /** Whether `traceparent` is read and written (OTEL_PROPAGATORS). */
  readonly propagates: boolean;
}

/** The request begins a trace that is not sampled. */
export const UNSAMPLED_ROOT = 'unsampled root';

/** A valid header of version 00 whose trace is not sampled: most requests, so no part of it is read. */
const UNSAMPLED_PARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f][02468ace]$/;

/** Chooses the requests that are traced. One for each shard; costs a request that is not sampled some tens of nanoseconds. */
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
   * @returns undefined = it is not traced, and its headers stay as they are
   */
  begin(headers: RequestHeaders, startMs: number): RequestTrace | typeof UNSAMPLED_ROOT | undefined {
    const { parentBased, propagates } = this.#sampler;
    const value = propagates ? headers.get('traceparent') : undefined;
    if (value === undefined) {
      if (this.#ids.draw()) return this.#trace(headers, startMs, undefined);
      return propagates ? UNSAMPLED_ROOT : undefined;
    }
    if (parentBased && UNSAMPLED_PARENT.test(value)) return undefined;
    const parent = parseTraceParent(value);
    if (parent === undefined) return this.#ids.draw() ? this.#trace(headers, startMs, undefined) : UNSAMPLED_ROOT;
    const sampled = parentBased ? parent.sampled : this.#ids.takes(parent.traceId);
    return sampled ? this.#trace(headers, startMs, parent) : undefined;
  }

  /** Header mutation for the model server; undefined = the client's own header goes on. Valid until the next call. */
  header(trace: RequestTrace | typeof UNSAMPLED_ROOT | undefined): Buffer | undefined {
    if (trace === UNSAMPLED_ROOT) return this.#ids.unsampledHeader();
    return this.#sampler.propagates ? trace?.header : undefined;
  }

  #trace(headers: RequestHeaders, startMs: number, parent: TraceParent | undefined): RequestTrace {
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
