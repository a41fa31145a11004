import { describe, expect, it } from 'vitest';
import type { LatencyAnswer, LatencySource } from '../../dist/src/ingress/exchange.js';
import type { ScheduleInput } from '../../dist/src/scheduling/decision.js';
import { requestBody, requestHeaders, responseHeaders } from './envoy-messages.js';
import { FakeShard, NO_ENDPOINTS, type ShardSetup } from './shard-fakes.js';

const PATH = { ':path': '/v1/completions', 'x-request-id': 'r1' };
const BODY = '{"model":"m","prompt":"hello"}';
const PREDICTED: LatencyAnswer = {
  outcome: 'predicted',
  predictions: { slots: [0], ttftMs: Float64Array.of(5), tpotMs: Float64Array.of(1) },
};
const LATE: LatencyAnswer = { outcome: 'late', predictions: undefined };

/** Answers when it is told to. */
class SlowSource implements LatencySource {
  readonly asked: {
    readonly input: ScheduleInput;
    readonly signal: AbortSignal;
    readonly answer: (a: LatencyAnswer) => void;
  }[] = [];

  predict(input: ScheduleInput, signal: AbortSignal): Promise<LatencyAnswer> {
    return new Promise((answer) => this.asked.push({ input, signal, answer }));
  }

  async answer(answer: LatencyAnswer): Promise<void> {
    this.asked[0]!.answer(answer);
    await Promise.resolve();
    await Promise.resolve();
  }
}

function waiting(setup: ShardSetup = {}) {
  const source = new SlowSource();
  const shard: FakeShard = new FakeShard({ ...setup, services: { ...setup.services, latency: source } });
  const proxy = shard.open().say(requestHeaders(PATH), requestBody(BODY));
  return { source, shard, proxy };
}

describe('a request that prediction servers are asked about', () => {
  it('a request that prediction servers are asked about is decided with what they say', async () => {
    const { source, shard, proxy } = waiting();
    expect(proxy.replies).toEqual([]);
    expect(source.asked[0]!.input).toMatchObject({ model: 'm', targetModel: 'm', path: '/v1/completions' });
    await source.answer(PREDICTED);
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(shard.decisions[0]?.predictions).toEqual(PREDICTED.predictions);
    expect(shard.recorder.named('processing')).toHaveLength(1);
    expect(shard.scanner.open_.size).toBe(0);
  });

  it('a request that prediction servers are asked about is decided without them when they say nothing', async () => {
    const { source, shard, proxy } = waiting();
    await source.answer(LATE);
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(shard.decisions[0]?.predictions).toBeUndefined();
  });

  it('a request that prediction servers are asked about is refused like any other', async () => {
    const { source, proxy } = waiting({ schedule: () => NO_ENDPOINTS });
    await source.answer(PREDICTED);
    expect(proxy.rejection?.status).toBe(503);
  });

  it('a request that prediction servers are asked about gets its answer when the proxy has half-closed meanwhile', async () => {
    const { source, proxy } = waiting();
    proxy.halfClose();
    expect(proxy.ending).toBe('open');
    await source.answer(PREDICTED);
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(proxy.ending).toBe('ended');
  });

  it('a request that prediction servers are asked about is given up when the stream is gone', async () => {
    const { source, shard, proxy } = waiting();
    proxy.close(true);
    expect(source.asked[0]!.signal.aborted).toBe(true);
    await source.answer(PREDICTED);
    expect(shard.decisions).toEqual([]);
    expect(shard.opener.load()).toMatchObject({ openStreams: 0, bufferedBytes: 0 });
  });

  it('a request that prediction servers are asked about is not decided any more when the proxy has answered by itself', async () => {
    const { source, shard, proxy } = waiting();
    proxy.say(responseHeaders({ ':status': '504' }));
    expect(source.asked[0]!.signal.aborted).toBe(true);
    await source.answer(PREDICTED);
    expect(shard.decisions).toEqual([]);
    expect(proxy.kinds).toEqual(['responseHeaders']);
  });

  it('a request that prediction servers are asked about breaks its own stream only, when the decision throws', async () => {
    const { source, shard, proxy } = waiting({
      schedule: () => {
        throw new Error('oh');
      },
    });
    await source.answer(PREDICTED);
    expect(proxy.ending).toMatchObject({ message: 'internal error' });
    expect(shard.scanner.open_.size).toBe(0);
  });
});

it('a request without a body is predicted too', async () => {
  const source = new SlowSource();
  const shard = new FakeShard({ services: { latency: source } });
  const proxy = shard.open().say(requestHeaders(PATH, true));
  expect(proxy.replies).toEqual([]);
  await source.answer(PREDICTED);
  expect(proxy.kinds).toEqual(['requestHeaders']);
});
