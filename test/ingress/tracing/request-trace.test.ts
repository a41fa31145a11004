import { describe, expect, it } from 'vitest';
import { RequestTrace } from '../../../dist/src/ingress/tracing/request-trace.js';
import type { TraceRecord } from '../../../dist/src/ingress/tracing/trace-record.js';

/** Milliseconds since 1970 at which the clock of the streams began. */
const EPOCH_MS = 1_700_000_000_000;

/** A trace of a request that arrived at 100, and its records. */
function traced() {
  const records: TraceRecord[] = [];
  const trace = new RequestTrace({
    names: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: undefined, orchestrationId: 'c'.repeat(16) },
    headers: { get: () => undefined } as never,
    startMs: 100,
    epochMs: EPOCH_MS,
    sink: (record) => records.push(record),
  });
  return { trace, records };
}

describe('the trace of a request', () => {
  it('the trace of a request has the times of its steps, in milliseconds since 1970', () => {
    const { trace, records } = traced();
    trace.prepared(101);
    trace.queued(102);
    trace.queued(103);
    trace.dequeued('Dispatched', 104);
    trace.placed({ endpoints: [{ endpoint: { name: 'e' }, address: '10.0.0.1:80' }], matchedTokens: 3 } as never, 105);
    trace.head(200, 106);
    trace.firstByte(107);
    trace.answered({} as never, 9, 108);
    trace.close(undefined, 109);
    expect(records).toHaveLength(1);
    expect(records[0]).toMatchObject({
      startMs: EPOCH_MS + 100,
      preparedMs: EPOCH_MS + 101,
      queuedMs: EPOCH_MS + 102,
      dequeuedMs: EPOCH_MS + 104,
      queueOutcome: 'Dispatched',
      answeredMs: EPOCH_MS + 105,
      endpoint: 'e',
      address: '10.0.0.1:80',
      matchedTokens: 3,
      headMs: EPOCH_MS + 106,
      status: 200,
      firstByteMs: EPOCH_MS + 107,
      answerEndMs: EPOCH_MS + 108,
      answerBytes: 9,
      endMs: EPOCH_MS + 109,
      end: 'completed',
    });
  });

  it('the trace of a request has the times of each of its decisions, and their records', () => {
    const { trace, records } = traced();
    trace.decided('id', { first: 4, count: 2 }, 101, 102);
    trace.decided('id', undefined, 103, 104);
    const times = { startMs: EPOCH_MS + 101, endMs: EPOCH_MS + 102 };
    expect(records).toEqual([
      expect.objectContaining({ kind: 'decision', requestId: 'id', first: 4, count: 2, ...times }),
    ]);
  });

  it('the trace of a request ends once, and keeps the first reason', () => {
    const { trace, records } = traced();
    trace.rejected({} as never, 101);
    trace.close('cancelled' as never, 102);
    trace.close('cancelled' as never, 103);
    expect(records).toEqual([expect.objectContaining({ end: 'rejected', endMs: EPOCH_MS + 102 })]);
  });
});
