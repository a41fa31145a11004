import { describe, expect, it } from 'vitest';
import type { TraceRecord } from '../../dist/src/ingress/tracing/trace-record.js';
import { ExportFailure } from '../../dist/src/operations/tracing/exporters.js';
import type { Span } from '../../dist/src/operations/tracing/span.js';
import { SpanQueue } from '../../dist/src/operations/tracing/span-queue.js';
import { TraceOutbox } from '../../dist/src/picker/shards/trace-outbox.js';
import { eventually } from '../tools/gateway/client.ts';

const span = { name: 's' } as Span;
const spans = (count: number): Span[] => Array.from({ length: count }, () => span);

interface Refusal {
  readonly spans: number;
  readonly why: string;
}

function queue(send: (count: number) => Promise<Refusal | undefined>, batch = {}) {
  const problems: string[] = [];
  const made = new SpanQueue({
    batch: { delayMs: 1, queueMax: 100, batchMax: 10, timeoutMs: 30_000, ...batch },
    encode: (batched) => Buffer.alloc(batched.length),
    exporter: { send: (request) => send(request.length), close: async () => {} },
    report: (problem) => problems.push(problem),
  });
  return { queue: made, problems };
}

describe('the queue of spans', () => {
  it('spans leave in batches of the bound', async () => {
    const sizes: number[] = [];
    const { queue: made } = queue(async (count) => void sizes.push(count));
    made.add(spans(25));
    await eventually('everything is exported', () => made.counts.exported === 25);
    expect(sizes).toEqual([10, 10, 5]);
  });

  it('spans over the bound of the queue are dropped and counted while an export is stuck', async () => {
    const { promise: stuck, resolve: go } = Promise.withResolvers<undefined>();
    const { queue: made, problems } = queue(() => stuck);
    made.add(spans(10));
    made.add(spans(150));
    expect([made.counts.dropped, made.waiting]).toEqual([50, 100]);
    expect(problems).toEqual([expect.stringContaining('OTEL_BSP_MAX_QUEUE_SIZE')]);
    go(undefined);
    await made.close();
    expect(made.counts).toEqual({ exported: 110, failed: 0, dropped: 50 });
  });

  it('an export that fails for a while is repeated', async () => {
    let calls = 0;
    const { queue: made } = queue(async () => {
      if (++calls < 3) throw new ExportFailure('busy', true, 1);
      return undefined;
    });
    made.add(spans(10));
    await eventually('the export succeeds', () => made.counts.exported === 10);
    expect(calls).toBe(3);
  });

  it('an export that cannot succeed is given up at once and reported', async () => {
    let calls = 0;
    const { queue: made, problems } = queue(async () => {
      calls++;
      throw new ExportFailure('status 400', false);
    });
    made.add(spans(10));
    await eventually('the export is given up', () => made.counts.failed === 10);
    expect([calls, problems]).toEqual([1, ['spans cannot be exported: status 400']]);
  });

  it('one span that the receiver refuses is told in the singular', async () => {
    const { queue: made, problems } = queue(async () => ({ spans: 1, why: 'too old' }));
    made.add(spans(10));
    await eventually('the export is over', () => made.counts.exported === 9);
    expect(problems).toEqual(['the receiver refuses 1 span: too old']);
  });

  it('spans that the receiver refuses count as failed', async () => {
    const { queue: made, problems } = queue(async () => ({ spans: 3, why: 'too old' }));
    made.add(spans(10));
    await eventually('the export is over', () => made.counts.exported === 7);
    expect([made.counts.failed, problems]).toEqual([3, ['the receiver refuses 3 spans: too old']]);
  });
});

describe('the outbox of a shard', () => {
  const record = { kind: 'request' } as TraceRecord;

  it('the next batch waits until the last one is taken; records over the bound are dropped and counted', async () => {
    const batches: { records: readonly TraceRecord[]; dropped: number }[] = [];
    const outbox = new TraceOutbox((batch) => void batches.push(batch));
    for (let i = 0; i < 1_500; i++) outbox.add(record);
    await eventually('a batch is sent', () => batches.length === 1);
    expect(batches[0]).toMatchObject({ dropped: 476 });
    for (let i = 0; i < 50; i++) outbox.add(record);
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(batches).toHaveLength(1);
    outbox.taken();
    await eventually('the next batch is sent', () => batches.length === 2);
  });

  it('everything is sent before the end', async () => {
    let sent = 0;
    const outbox: TraceOutbox = new TraceOutbox(({ records }) => {
      sent += records.length;
      queueMicrotask(() => outbox.taken());
    });
    for (let i = 0; i < 300; i++) outbox.add(record);
    await outbox.close();
    expect(sent).toBe(300);
  });
});
