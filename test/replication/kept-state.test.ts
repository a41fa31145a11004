import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterEach, describe, expect, it } from 'vitest';
import { KeptState, type OutlivingState } from '../../dist/src/picker/control/kept-state.js';
import { JetStreamStore } from '../../dist/src/replication/jetstream-store.js';
import type { KeptName, KeptStore } from '../../dist/src/replication/kept-store.js';
import { NatsServer, skipReason } from './nats-server.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A replica's side: what it has, and what was restored. */
class Replica implements OutlivingState {
  has: Uint8Array | undefined;
  tokens: { tenant: string; tokens: number }[] = [];
  readonly restored: unknown[] = [];
  readonly log: string[] = [];
  readonly kept: KeptState;

  constructor(store: KeptStore, writes = true) {
    const note = (_details: object, text: string) => this.log.push(text);
    const log = { info: () => undefined, warn: note } as never;
    this.kept = new KeptState({ store, state: this, writes: () => writes, log });
  }

  learned = () => this.has;
  restoreLearned = (learned: Uint8Array) => void this.restored.push(Buffer.from(learned).toString());
  missing = () => this.tokens;
  restore = (missing: readonly unknown[], ageMs: number) => void this.restored.push({ missing, isAge: ageMs >= 0 });
}

class Memory implements KeptStore {
  readonly values = new Map<KeptName, Uint8Array>();
  writes = 0;
  problem: Error | undefined;

  async get(name: KeptName) {
    if (this.problem !== undefined) throw this.problem;
    return this.values.get(name);
  }

  async put(name: KeptName, value: Uint8Array) {
    if (this.problem !== undefined) throw this.problem;
    this.writes++;
    this.values.set(name, value);
  }
}

describe('state that survives all replicas', () => {
  it('a replica keeps its last state at its end, and a later one goes on from it', async () => {
    const store = new Memory();
    const [before, after] = [new Replica(store), new Replica(store)];
    await before.kept.start();
    before.has = Buffer.from('coefficients');
    before.tokens = [{ tenant: 'free', tokens: 900 }];
    await before.kept.stop();
    await after.kept.start();
    await after.kept.stop();
    const missing = [{ tenant: 'free', tokens: 900 }];
    expect(after.restored).toEqual(['coefficients', { missing, isAge: true }]);
  });

  it('one replica of a group writes', async () => {
    const store = new Memory();
    const second = new Replica(store, false);
    second.has = Buffer.from('coefficients');
    await second.kept.start();
    await second.kept.stop();
    expect(store.writes).toBe(0);
  });

  it('buckets that are full and were are not written', async () => {
    const store = new Memory();
    const replica = new Replica(store);
    await replica.kept.start();
    await replica.kept.stop();
    expect(store.writes).toBe(0);
  });

  it('a store that fails costs one line in the log', async () => {
    const store = new Memory();
    store.problem = new Error('no answer');
    const replica = new Replica(store);
    replica.has = Buffer.from('coefficients');
    replica.tokens = [{ tenant: 'free', tokens: 900 }];
    await replica.kept.start();
    await replica.kept.stop();
    expect(replica.log).toEqual(['nothing is kept in JetStream, all else goes on: no answer']);
  });

  it('a kept value that is none is refused with a reason', async () => {
    const store = new Memory();
    store.values.set('tenants', Buffer.from('{"savedAtMs": 1}'));
    const replica = new Replica(store);
    await replica.kept.start();
    await replica.kept.stop();
    expect([replica.restored, replica.log.length]).toEqual([[], 1]);
  });
});

async function connected(server: NatsServer): Promise<NatsConnection> {
  const connection = await connect({ servers: server.url });
  cleanups.push(() => connection.close());
  return connection;
}

describe.skipIf(skipReason !== '')(`a store in JetStream${skipReason}`, () => {
  it('a store in JetStream has the last value of each group after its server was killed and restarted', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'jetstream-'));
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    const server = await NatsServer.start(['-js', '-sd', folder]);
    cleanups.push(() => server.stop());
    const first = await connected(server);
    const store = new JetStreamStore(() => first, 'a group/1');
    expect(await store.get('tenants')).toBeUndefined();
    await store.put('tenants', Buffer.from('old'));
    await store.put('tenants', Buffer.from('new'));
    await new JetStreamStore(() => first, 'a group').put('tenants', Buffer.from('another'));
    await first.close();
    await server.stop();
    await server.restart();
    const second = await connected(server);
    const value = await new JetStreamStore(() => second, 'a group/1').get('tenants');
    expect(Buffer.from(value!).toString()).toBe('new');
  });

  it('a server without JetStream, and no server, are problems that end', async () => {
    const server = await NatsServer.start();
    cleanups.push(() => server.stop());
    const connection = await connected(server);
    await expect(new JetStreamStore(() => connection, 'g').get('learned')).rejects.toThrow(/jetstream/i);
    await expect(new JetStreamStore(() => undefined, 'g').get('learned')).rejects.toThrow('no connection to NATS');
  });
});
