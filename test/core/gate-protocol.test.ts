import { describe, expect, it } from 'vitest';
import { explore } from './explorer.ts';
import { type Asked, gateProtocol, type Scene } from './gate-protocol.ts';

const MOST = 200_000;

const high = (shard: 0 | 1, given: Partial<Asked> = {}): Asked => ({ shard, band: 0, may: [0], ...given });
const low = (shard: 0 | 1, given: Partial<Asked> = {}): Asked => ({ shard, band: 1, may: [0], ...given });

const SCENES: Readonly<Record<string, Scene>> = {
  'two shards and one place': { requests: [low(0), low(1), high(1)], endpoints: 1 },
  'clients that go away': { requests: [low(0), low(1, { cancels: true }), low(1)], endpoints: 1 },
  'waits that end': { requests: [low(0), low(1, { expires: true, cancels: true })], endpoints: 1 },
  'a shard that dies at any moment': { requests: [low(0), low(1, { cancels: true })], endpoints: 1, deaths: 1 },
  'an endpoint that leaves and comes back': {
    requests: [low(0, { may: [0, 1] }), low(1), high(1, { may: [0, 1] })],
    endpoints: 2,
    leaves: 1,
  },
  'an endpoint that leaves while a shard dies': { requests: [low(0), low(1)], endpoints: 1, deaths: 1, leaves: 1 },
};

describe('the wait slot protocol, in every order of its steps', () => {
  it.each(Object.keys(SCENES))(
    'the wait slot protocol, in every order of its steps charges nobody twice, loses nobody and lets nobody sleep ' +
      'on: %s',
    (name) => {
      expect(explore(gateProtocol(SCENES[name]!), MOST)).toBeGreaterThan(1_000);
    },
    120_000,
  );
});

describe('the explorer finds a protocol that', () => {
  const scene = SCENES['two shards and one place']!;
  const faulty = (fault: NonNullable<Scene['fault']>) => () => explore(gateProtocol({ ...scene, fault }), MOST);

  it('the explorer finds a protocol that forgets who sleeps when it rings', () => {
    expect(faulty('bell takes the sleeper away')).toThrow(/^nothing goes on, and request \d is waiting: shard/);
  });

  it('the explorer finds a protocol that does not look once more before it sleeps', () => {
    expect(faulty('sleeps without a second look')).toThrow(/^nothing goes on, and request \d is waiting: shard/);
  });

  it('the explorer finds a protocol that counts who waits outside of the lock', () => {
    expect(faulty('counts after the lock')).toThrow(/are said to wait in band \d/);
  });
});
