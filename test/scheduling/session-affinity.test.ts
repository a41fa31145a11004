import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sessionAffinityFilter } from '../../dist/src/scheduling/filters/session-affinity-filter.js';
import { agentIdentity } from '../../dist/src/scheduling/header-processors/agent-identity.js';
import { sessionIdProducer } from '../../dist/src/scheduling/producers/session-id-producer.js';
import { sessionAffinityScorer } from '../../dist/src/scheduling/scorers/session-affinity-scorer.js';
import { softSessionAffinityScorer } from '../../dist/src/scheduling/scorers/soft-session-affinity-scorer.js';
import { plainRequest } from '../core/pool.ts';
import { HookPool, idle, type Use } from './hook-pool.ts';

const token = (name: string) => Buffer.from(`default/${name}`).toString('base64');
const everyPod = ['pod-0', 'pod-1', 'pod-2'];

/** Headers that the plugins add to the answer of a request that was placed anywhere. */
function answered(pool: HookPool, served?: string): { name: string; headers: Record<string, string> } {
  const request = pool.begin();
  const outcome = pool.schedule({}, request);
  if (outcome.kind === 'rejected') throw new Error(outcome.message);
  outcome.charge.release();
  const head = { status: 200, headers: { get: () => undefined }, served };
  const headers = Object.fromEntries(pool.plugins.responseHeaders(request, outcome, head));
  return { name: outcome.endpoints[0]!.endpoint.name, headers };
}

describe('session-affinity-filter, encoded_endpoint_header', () => {
  const uses: Use[] = [{ definition: sessionAffinityFilter }];

  it('session-affinity-filter, encoded_endpoint_header sends a session back to the endpoint that its token names', () => {
    const pool = new HookPool(uses, idle(3));
    for (const name of everyPod) expect(pool.picks({ headers: { 'x-session-token': token(name) } })).toEqual([name]);
  });

  it.each(['', 'nonsense!', token('gone'), Buffer.from('pod-1').toString('base64')])(
    'session-affinity-filter, encoded_endpoint_header keeps all for the token %j',
    (value) => {
      expect(new HookPool(uses, idle(3)).picks({ headers: { 'x-session-token': value } })).toEqual(everyPod);
    },
  );

  it('session-affinity-filter, encoded_endpoint_header keeps all that the proxy allows when the endpoint is not among them', () => {
    const asked = { headers: { 'x-session-token': token('pod-1') }, subset: ['10.0.0.1', '10.0.0.3'] };
    expect(new HookPool(uses, idle(3)).picks(asked)).toEqual(['pod-0', 'pod-2']);
  });

  it('session-affinity-filter, encoded_endpoint_header keeps all while the endpoint takes no requests', () => {
    const pool = new HookPool(uses, idle(3));
    pool.pool.table.setState(1, 'draining');
    expect(pool.picks({ headers: { 'x-session-token': token('pod-1') } })).toEqual(['pod-0', 'pod-2']);
  });

  it('session-affinity-filter, encoded_endpoint_header tells the client the endpoint that answered', () => {
    const { name, headers } = answered(new HookPool(uses, idle(3)));
    expect(headers).toEqual({ 'x-session-token': token(name) });
  });

  it('session-affinity-filter, encoded_endpoint_header takes another header name, in any case', () => {
    const parameters = { encodedEndpointHeaderConfig: { header: 'X-Sticky' } };
    const pool = new HookPool([{ definition: sessionAffinityFilter, parameters }], idle(3));
    expect(pool.picks({ headers: { 'x-sticky': token('pod-2') } })).toEqual(['pod-2']);
    expect(Object.keys(answered(pool).headers)).toEqual(['x-sticky']);
  });

  it('session-affinity-filter, encoded_endpoint_header understands only tokens of its own making when they are signed', () => {
    const keyFile = join(mkdtempSync(join(tmpdir(), 'pointsman-key-')), 'key');
    writeFileSync(keyFile, 'a key of more than sixteen bytes\n');
    const parameters = { encodedEndpointHeaderConfig: { tokenFormat: 'signed', keyFile } };
    const pool = new HookPool([{ definition: sessionAffinityFilter, parameters }], idle(3));
    const { name, headers } = answered(pool);
    expect(headers['x-session-token']).toMatch(/^[\w-]{22}$/);
    expect(pool.picks({ headers })).toEqual([name]);
    expect(pool.picks({ headers: { 'x-session-token': token('pod-1') } })).toEqual(everyPod);
  });

  it('session-affinity-filter, encoded_endpoint_header refuses signed tokens without a key', () => {
    const parameters = { encodedEndpointHeaderConfig: { tokenFormat: 'signed' } };
    expect(sessionAffinityFilter.parameters.safeParse(parameters).success).toBe(false);
    const unreadable = { encodedEndpointHeaderConfig: { tokenFormat: 'signed', keyFile: '/no/such/file' } };
    expect(() => new HookPool([{ definition: sessionAffinityFilter, parameters: unreadable }], idle(1))).toThrow(
      'plugin "session-affinity-filter" of type "session-affinity-filter" does not start: keyFile: /no/such/file ' +
        'does not exist',
    );
  });
});

describe('session-affinity-filter, session_id', () => {
  const uses: Use[] = [{ definition: sessionAffinityFilter, parameters: { strategy: 'session_id' } }];
  const asked = { headers: { 'x-session-id': 'abc' } };

  it('session-affinity-filter, session_id remembers where a session went, and sets no header', () => {
    const pool = new HookPool(uses, idle(3));
    const first = pool.pick(asked);
    expect(pool.picks(asked)).toEqual([first]);
    expect(pool.picks()).toEqual(everyPod);
    expect(answered(pool).headers).toEqual({});
  });

  it('session-affinity-filter, session_id forgets a session that was not used for its time', () => {
    const pool = new HookPool(uses, idle(3));
    pool.pick(asked);
    pool.clock += 300_001;
    const away = new Set<string>();
    for (let i = 0; i < 40; i++) {
      away.add(pool.pick(asked));
      pool.clock += 300_001;
    }
    expect([...away].sort()).toEqual(everyPod);
  });

  it('session-affinity-filter, session_id moves a session for good when its endpoint cannot be used', () => {
    const pool = new HookPool(uses, idle(3));
    const first = pool.pick(asked);
    const others = [0, 1, 2].filter((slot) => `pod-${slot}` !== first);
    const moved = pool.pick({ ...asked, subset: others.map((slot) => `10.0.0.${slot + 1}`) });
    expect(moved).not.toBe(first);
    expect(pool.picks(asked)).toEqual([moved]);
  });

  it('session-affinity-filter, session_id moves a session whose endpoint has left the pool', () => {
    const pool = new HookPool(uses, idle(3));
    const slot = Number(pool.pick(asked).slice(4));
    pool.pool.table.setState(slot, 'draining');
    pool.directory.apply([], [slot]);
    const moved = pool.pick(asked);
    expect(moved).not.toBe(`pod-${slot}`);
    expect(pool.picks(asked)).toEqual([moved]);
  });

  it('session-affinity-filter, session_id tells the other shards a new binding, not every use', () => {
    const pool = new HookPool(uses, idle(3));
    const first = pool.pick(asked);
    pool.picks(asked, 20);
    expect(pool.told).toEqual([{ session: 'abc', endpoint: `default/${first}`, boundAt: 1_000, usedAt: 1_000 }]);
    pool.clock += 30_001;
    pool.pick(asked);
    expect(pool.told).toHaveLength(2);
  });

  it('session-affinity-filter, session_id goes where another shard bound the session', () => {
    const pool = new HookPool(uses, idle(3));
    pool.hear({ session: 'abc', endpoint: 'default/pod-2', boundAt: 900, usedAt: 900 });
    expect(pool.picks(asked)).toEqual(['pod-2']);
  });

  it('session-affinity-filter, session_id comes to the same binding on both of two shards that bound a session at once', () => {
    const shards = [new HookPool(uses, idle(3)), new HookPool(uses, idle(3))];
    shards[0]!.pick({ ...asked, subset: ['10.0.0.1'] });
    shards[1]!.pick({ ...asked, subset: ['10.0.0.3'] });
    shards[0]!.hear(shards[1]!.told[0]);
    shards[1]!.hear(shards[0]!.told[0]);
    expect(shards[0]!.picks(asked)).toEqual(shards[1]!.picks(asked));
  });

  it('session-affinity-filter, session_id takes the session from the first source that has one', () => {
    const sources = [{ header: 'X-First' }, { attribute: 'agent-identity' }, { producer: 'session-id-producer' }];
    const parameters = { strategy: 'session_id', sessionIdConfig: { sources } };
    const pool = new HookPool(
      [
        { definition: sessionAffinityScorer, parameters },
        { definition: agentIdentity },
        { definition: sessionIdProducer, parameters: { cookieName: 'sid' } },
      ],
      idle(3),
    );
    const ways = [{ 'x-first': 's' }, { 'session-id': 's' }, { cookie: 'a=b; sid="s"' }];
    const first = pool.pick({ headers: ways[0]! });
    for (const headers of ways) expect(pool.picks({ headers }, 10)).toEqual([first]);
  });

  it('session-affinity-filter, session_id needs exactly one place for each source', () => {
    const valid = (source: object) =>
      sessionAffinityFilter.parameters.safeParse({ sessionIdConfig: { sources: [source] } }).success;
    expect([{}, { header: 'a', attribute: 'b' }, { header: 'a' }, { attribute: 'b' }].map(valid)).toEqual([
      false,
      false,
      true,
      true,
    ]);
  });
});

describe('session-affinity-scorer', () => {
  it('session-affinity-scorer scores 1 for the endpoint of the session and 0 for the others', () => {
    const pool = new HookPool([{ definition: sessionAffinityScorer, weight: 3 }], idle(3));
    const outcome = pool.schedule({ headers: { 'x-session-token': token('pod-1') } });
    expect(outcome.kind === 'placed' && [...outcome.scores!.values()]).toEqual([0, 3, 0]);
  });

  it('session-affinity-scorer scores 0 for all without a session', () => {
    const outcome = new HookPool([{ definition: sessionAffinityScorer }], idle(3)).schedule();
    expect(outcome.kind === 'placed' && [...outcome.scores!.values()]).toEqual([0, 0, 0]);
  });
});

describe('session-id-producer', () => {
  it.each([{}, { headerName: 'a', cookieName: 'b' }, { headerName: '' }])(
    'session-id-producer refuses %j',
    (parameters) => {
      expect(sessionIdProducer.parameters.safeParse(parameters).success).toBe(false);
    },
  );
});

describe('agent-identity', () => {
  it.each([
    [{ 'x-claude-code-session-id': 's1' }, 's1'],
    [{ 'x-claude-code-session-id': 's1', 'x-claude-code-agent-id': 'a7' }, 's1 a7'],
    [{ 'x-session-affinity': 's1', 'x-claude-code-agent-id': 'a7' }, 's1'],
    [{ 'session-id': 's1', 'thread-id': 't2' }, 's1 t2'],
    [{ session_id: 's1', 'thread-id': ' ' }, 's1'],
    [{ 'x-dynamo-session-id': 's1' }, 's1'],
  ])('agent-identity tells the conversations of an agent and its sub-agents apart: %j is %s', (headers, expected) => {
    const pool = new HookPool([{ definition: agentIdentity, parameters: {} }], idle(1));
    const request = pool.begin({ headers });
    expect([request.attributes.get('agent-session'), request.fairnessId]).toEqual([expected, 's1']);
  });

  const named = (headers: Record<string, string>, fairnessId?: string, parameters = {}) => {
    const pool = new HookPool([{ definition: agentIdentity, parameters }], idle(1));
    return pool.begin({ headers, ...(fairnessId === undefined ? {} : { fairnessId }) }).fairnessId;
  };

  it.each(['x-claude-code-session-id', 'x-session-affinity', 'session-id', 'session_id', 'x-dynamo-session-id'])(
    'agent-identity takes the flow from %s',
    (name) => {
      expect(named({ [name]: 's1' })).toBe('s1');
    },
  );

  it('agent-identity leaves a fairness id that the request names itself', () => {
    expect(named({ 'session-id': 's1' }, 'tenant-a')).toBe('tenant-a');
  });

  it('agent-identity looks at the configured headers first, in any case', () => {
    const parameters = { additionalSessionHeaders: ['X-Mine'] };
    expect(named({ 'session-id': 's1', 'x-mine': 'm1' }, undefined, parameters)).toBe('m1');
  });

  it('agent-identity says nothing without such a header, or with an empty one', () => {
    expect(named({ 'session-id': '  ' })).toBeUndefined();
  });
});

describe('soft-session-affinity-scorer', () => {
  const uses: Use[] = [{ definition: softSessionAffinityScorer, parameters: { strategy: 'session_id' } }];
  const asked = { headers: { 'x-session-id': 'abc' } };
  const busy = (pool: HookPool, slot: number, requests: number) => {
    for (let i = 0; i < requests; i++) pool.pool.decider.decide({ ...plainRequest, subset: [slot] });
  };
  /** A pool with a session on pod-2. */
  function bound(parameters: object = {}): HookPool {
    const pool = new HookPool(
      [{ definition: softSessionAffinityScorer, parameters: { strategy: 'session_id', ...parameters } }],
      idle(3),
    );
    pool.hear({ session: 'abc', endpoint: 'default/pod-2', boundAt: 900, usedAt: 900 });
    return pool;
  }
  const scoreOf = (pool: HookPool): number => {
    pool.pick(asked);
    return pool.pool.decider.scoreOf(2);
  };

  it('soft-session-affinity-scorer sends a session where it was served last', () => {
    const pool = new HookPool(uses, idle(3));
    const first = pool.pick(asked);
    expect(pool.picks(asked)).toEqual([first]);
    expect(pool.picks()).toEqual(everyPod);
  });

  it.each([
    // requests on pod-0, pod-1 and pod-2, score of pod-2: load = (own + 1) / (mean + 1)
    [0, 0, 0, 1],
    [4, 4, 4, 1],
    [1, 1, 4, (2 - 5 / 3) / 0.75],
    [0, 0, 6, 0],
  ])('soft-session-affinity-scorer with %i, %i and %i requests in flight scores %f', (a, b, c, score) => {
    const pool = bound();
    for (const [slot, requests] of [a, b, c].entries()) busy(pool, slot, requests);
    expect(scoreOf(pool)).toBeCloseTo(score, 5);
  });

  it('soft-session-affinity-scorer yields at the load that it is given', () => {
    const pool = bound({ fullUpTo: 1, noneFrom: 4 });
    busy(pool, 2, 3);
    expect(scoreOf(pool)).toBeCloseTo((4 - 2) / 3, 5);
    expect(softSessionAffinityScorer.parameters.safeParse({ fullUpTo: 3, noneFrom: 2 }).success).toBe(false);
  });

  it('soft-session-affinity-scorer leaves a session where it went when its endpoint was busy', () => {
    const pool = bound();
    busy(pool, 2, 8);
    const moved = pool.pick({ ...asked, subset: ['10.0.0.1', '10.0.0.3'] });
    const elsewhere = moved === 'pod-2' ? pool.pick({ ...asked, subset: ['10.0.0.1'] }) : moved;
    expect(elsewhere).toBe('pod-0');
    expect(pool.picks(asked)).toEqual(['pod-0']);
  });
});
