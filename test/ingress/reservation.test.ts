import { describe, expect, it } from 'vitest';
import { requestBody, requestHeaders } from './envoy-messages.js';
import { FakeShard } from './shard-fakes.js';

const ASKS = { ':path': '/v1/completions', 'x-request-id': 'r1', prefer: 'respond-async, Reserve-Endpoint; wait=1' };
const BODY = '{"model":"m","prompt":"hello"}';

/** The immediate answer to a request, and the charges of the shard. */
function ask(shard: FakeShard, headers: Record<string, string> = ASKS) {
  const proxy = shard.open().say(requestHeaders(headers), requestBody(BODY));
  return { proxy, reply: proxy.replies[0]!, charges: shard.charges.map(({ releases }) => releases) };
}

describe('a request that asks for its endpoint alone', () => {
  it('the answer names the endpoint, and nothing is sent there', () => {
    const shard: FakeShard = new FakeShard({ reserves: true, schedule: () => shard.place('10.0.0.2:8000') });
    const { proxy, reply } = ask(shard);
    expect(proxy.kinds).toEqual(['immediate']);
    expect(reply).toMatchObject({ status: 204, body: Buffer.alloc(0) });
    expect(reply.headers).toEqual({
      'x-llm-d-reserved-host-port': '10.0.0.2:8000',
      'preference-applied': 'reserve-endpoint',
    });
  });

  it('the answer has the headers by which the model server would have known the other stages', () => {
    const headers = new Map([
      ['x-prefiller-host-port', '10.0.0.9:8000'],
      ['x-other', 'not told'],
    ]);
    const shard: FakeShard = new FakeShard({
      reserves: true,
      schedule: () => ({ ...shard.place('10.0.0.2:8000'), headers }),
    });
    const { reply } = ask(shard);
    expect(reply.headers['x-prefiller-host-port']).toBe('10.0.0.9:8000');
    expect(reply.headers['x-other']).toBeUndefined();
  });

  it('the room of a reservation is released at once, exactly once', () => {
    expect(ask(new FakeShard({ reserves: true })).charges).toEqual([1]);
  });

  it('a request without a body is refused', () => {
    const proxy = new FakeShard({ reserves: true }).open().say(requestHeaders(ASKS, true));
    expect(proxy.replies[0]).toMatchObject({ status: 400 });
  });

  it('a request goes to its endpoint where nothing answers it, as if it had not asked', () => {
    const shard = new FakeShard();
    const { proxy } = ask(shard);
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
    expect(shard.decisions).toHaveLength(1);
  });

  it('another preference changes nothing', () => {
    const { proxy } = ask(new FakeShard({ reserves: true }), { ...ASKS, prefer: 'respond-async' });
    expect(proxy.kinds).toEqual(['requestHeaders', 'requestBody']);
  });
});
