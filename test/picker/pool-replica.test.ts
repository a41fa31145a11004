import { beforeEach, describe, expect, it } from 'vitest';
import {
  attachCore,
  createPoolMemory,
  Decider,
  defaultPoolSizes,
  EndpointTable,
  ProgramTable,
} from '../../dist/src/core/index.js';
import { PoolReplica } from '../../dist/src/picker/control/pool-replica.js';
import { plainRequest } from '../core/pool.ts';
import { replicaAssignments, SILENT_STATE } from './replica-parts.ts';

const ENDPOINTS = 4;

/** A pool with a decider that picks the endpoint with the fewest requests. */
function replicaOfPool() {
  const sizes = { ...defaultPoolSizes, endpoints: 64, indexBlocks: 4_096, threads: 2, changeBytes: 1 << 16 };
  const memory = createPoolMemory(sizes, { hashSeed: 7n });
  const control = attachCore(memory, 0);
  const operations = [
    { code: 'OP_SCORE_ACTIVE_REQUEST', weight: 1, parameters: [] },
    { code: 'OP_PICK_MAX_SCORE', weight: 1, parameters: [1] },
  ] as const;
  new ProgramTable(control).publish(0, operations, { inserts: true });
  const table = new EndpointTable(control);
  for (let slot = 0; slot < ENDPOINTS; slot++) {
    table.open(slot, 1);
    table.setState(slot, 'live');
  }
  const assignments = replicaAssignments(ENDPOINTS);
  const replica = new PoolReplica({ core: control, assignments: () => assignments, state: SILENT_STATE });
  replica.endpointsChanged();
  const decider = new Decider(attachCore(memory, 1), 1n);
  const place = () => {
    const { ticket, ticketGeneration } = decider.decide({ ...plainRequest, promptTokens: 100, nowMs: 1_000 });
    return () => decider.release(ticket, ticketGeneration);
  };
  return { replica, place };
}

describe('load of a replica for its peers', () => {
  let pool: ReturnType<typeof replicaOfPool>;
  /** Requests on the endpoints that are told. */
  const told = (all = false) => {
    pool.replica.placements(() => undefined);
    pool.replica.changed();
    return [...pool.replica.loads(all)].map(({ requests }) => requests);
  };

  beforeEach(() => {
    pool = replicaOfPool();
    told();
  });

  it('the load of the endpoints on which it has changed is told, and no other', () => {
    expect(told()).toEqual([]);
    const release = pool.place();
    expect(told()).toEqual([1]);
    expect(told()).toEqual([]);
    release();
    expect(told()).toEqual([0]);
  });

  it('a full update has the load of all endpoints', () => {
    pool.place();
    expect(told(true).sort()).toEqual([0, 0, 0, 1]);
    expect(told()).toEqual([]);
  });

  it('endpoints that are assigned anew are all told', () => {
    pool.place();
    told();
    pool.replica.endpointsChanged();
    expect(told().sort()).toEqual([0, 0, 0, 1]);
  });

  it('what is told is what is known of the pool', () => {
    for (let i = 0; i < 9; i++) pool.place();
    pool.replica.placements(() => undefined);
    pool.replica.changed();
    const own = pool.replica.known().map(({ own: load }) => load);
    const rows = [...pool.replica.loads(true)].map(({ endpoint: _, charged: __, ...load }) => load);
    expect(rows).toEqual(own);
  });
});
