import { describe, expect, it } from 'vitest';
import { agentIdentity } from '../../dist/src/scheduling/header-processors/agent-identity.js';
import { SESSION_STATE, sessionStateProducer } from '../../dist/src/scheduling/producers/session-state-producer.js';
import { SessionStates } from '../../dist/src/scheduling/session/session-states.js';
import { HookPool, idle } from './hook-pool.ts';

const headers = { 'session-id': 'agent-1' };
const USAGE = { promptTokens: 100, completionTokens: 20, totalTokens: 120, cachedTokens: -1 };

function makePool(parameters: unknown = {}) {
  return new HookPool([{ definition: agentIdentity }, { definition: sessionStateProducer, parameters }], idle(2));
}

/** State that plugins see for the next request of the session, whose charge is held. */
function next(pool: HookPool) {
  const hookRequest = pool.begin({ headers });
  pool.schedule({ headers }, hookRequest);
  return { hookRequest, state: hookRequest.attributes.get(SESSION_STATE) };
}

describe('session-state-producer', () => {
  it('session-state-producer begins a session with nothing', () => {
    const pool = makePool();
    expect(next(pool).state).toEqual({
      turnsTaken: 0,
      durationMs: 0,
      lastSeenAt: 1_000,
      inFlightRequests: 0,
      completedRequests: 0,
      totalInputTokens: 0,
      totalOutputTokens: 0,
    });
  });

  it('session-state-producer counts turns, requests in flight, and the tokens of answers that have ended', () => {
    const pool = makePool();
    const { hookRequest } = next(pool);
    pool.clock = 3_000;
    expect(next(pool).state).toMatchObject({
      turnsTaken: 1,
      inFlightRequests: 1,
      durationMs: 2_000,
      lastSeenAt: 1_000,
    });
    pool.plugins.report(hookRequest, USAGE as never);
    pool.plugins.ended(hookRequest);
    pool.clock = 9_000;
    expect(next(pool).state).toEqual({
      turnsTaken: 2,
      durationMs: 8_000,
      lastSeenAt: 3_000,
      inFlightRequests: 1,
      completedRequests: 1,
      totalInputTokens: 100,
      totalOutputTokens: 20,
    });
  });

  it('session-state-producer leaves requests without an agent alone', () => {
    const pool = makePool();
    const hookRequest = pool.begin();
    pool.schedule({}, hookRequest);
    expect(hookRequest.attributes.has(SESSION_STATE)).toBe(false);
    expect(pool.told).toEqual([]);
  });

  it('session-state-producer counts with the other shards', () => {
    const [one, other] = [makePool(), makePool()];
    const { hookRequest } = next(one);
    one.plugins.ended(hookRequest);
    for (const message of one.told) other.hear(message);
    expect(next(other).state).toMatchObject({ turnsTaken: 1, inFlightRequests: 0 });
  });
});

describe('states of sessions', () => {
  const turn = { turns: 1, inFlight: 0, completed: 0, inputTokens: 0, outputTokens: 0 };
  const make = () => new SessionStates({ ttlMs: 100, sweepMs: 10 });

  it('states of sessions are forgotten after their time, unless a request is in flight', () => {
    const states = make();
    states.add('idle', turn, 0);
    states.add('busy', { ...turn, inFlight: 1 }, 0);
    expect(states.find('idle', 100)?.tally.turns).toBe(1);
    expect(states.find('idle', 101)).toBeUndefined();
    expect(states.find('busy', 1_000)?.tally.inFlight).toBe(1);
    states.add('new', turn, 1_000);
    expect(states.size).toBe(2);
  });

  it('states of sessions are at most 65,536; the oldest one without requests goes first', () => {
    const states = make();
    states.add('busy', { ...turn, inFlight: 1 }, 0);
    for (let i = 0; i < 65_536; i++) states.add(`session-${i}`, turn, 0);
    expect(states.size).toBe(65_536);
    expect(states.find('busy', 0)).toBeDefined();
    expect(states.find('session-0', 0)).toBeUndefined();
    expect(states.find('session-1', 0)).toBeDefined();
  });

  it('states of sessions never count fewer than no requests in flight', () => {
    const states = make();
    states.add('a', { ...turn, inFlight: -1 }, 0);
    expect(states.find('a', 0)?.tally.inFlight).toBe(0);
  });
});
