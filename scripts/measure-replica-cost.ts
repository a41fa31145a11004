// Measures what replication costs a picker: `node scripts/measure-replica-cost.ts`.
//
// Two pools in one process, with a link that passes each message on at once: the times are those of the control thread
// alone, without sockets and timers. Each figure is the least of many batches, so that other work on the machine does
// not count. A tick without news is the fixed cost; the slope of a tick over its requests is the cost a request.
import {
  attachCore,
  createPoolMemory,
  Decider,
  defaultPoolSizes,
  EndpointTable,
  ProgramTable,
} from '../dist/src/core/index.js';
import { PoolReplica } from '../dist/src/picker/control/pool-replica.js';
import type { ReplicaLink } from '../dist/src/replication/link.js';
import { Replicator } from '../dist/src/replication/replicator.js';
import { plainRequest } from '../test/core/pool.ts';
import { replicaAssignments, SILENT_STATE } from '../test/picker/replica-parts.ts';

/** Ticks of five seconds, because the code is compiled only after the first one and a half. */
const BATCHES = Number(process.env.REPLICA_BATCHES ?? 1_000);
const NEW_BLOCKS = 8;
const none = () => undefined;

/** A link to the one other replica. */
class Direct implements ReplicaLink {
  readonly connected = true;
  readonly sent: Uint8Array[] = [];
  open = none;
  broadcast(bytes: Uint8Array): void {
    this.sent.push(bytes);
  }
  send = none;
  close = async () => undefined;
}

/** A pool with its decider and its replicator. */
function replica(name: string, endpoints: number) {
  const sizes = { ...defaultPoolSizes, endpoints: 128, threads: 2, changeBytes: 1 << 20 };
  const memory = createPoolMemory(sizes, { hashSeed: 7n });
  const control = attachCore(memory, 0);
  const operations = [
    { code: 'OP_SCORE_PREFIX', weight: 3, parameters: [] },
    { code: 'OP_SCORE_ACTIVE_REQUEST', weight: 2, parameters: [] },
    { code: 'OP_PICK_MAX_SCORE', weight: 1, parameters: [1] },
  ] as const;
  new ProgramTable(control).publish(0, operations, { inserts: true });
  const table = new EndpointTable(control);
  for (let slot = 0; slot < endpoints; slot++) {
    table.open(slot, 1);
    table.setCapacity(slot, 4_000);
    table.setState(slot, 'live');
  }
  const assignments = replicaAssignments(endpoints);
  const pool = new PoolReplica({ core: control, assignments: () => assignments, state: SILENT_STATE });
  pool.endpointsChanged();
  const link = new Direct();
  const options = {
    replica: name,
    epoch: 1,
    seedCheck: 1,
    sharesIndex: true,
    pool,
    link,
    wallMs: () => nowMs,
    log: none,
  };
  const replicator = new Replicator(options);
  replicator.alone();
  const shard = attachCore(memory, 1);
  const decider = new Decider(shard, 1n);
  const hashes = new BigUint64Array(memory.memory.buffer, shard.call.hashesAddress() >>> 0, sizes.chainBlocks);
  const place = () => {
    for (let i = 0; i < NEW_BLOCKS; i++) hashes[i] = nextBlock++;
    const request = { ...plainRequest, blocks: NEW_BLOCKS, promptTokens: 64 * NEW_BLOCKS, nowMs };
    const { ticket, ticketGeneration } = decider.decide(request);
    return () => decider.release(ticket, ticketGeneration);
  };
  return { replicator, link, place };
}

let nowMs = 1_000;
let nextBlock = 1n;

/**
 * Shortest times, in microseconds, of one tick of the sender with `requests` requests in it, and of receiving its
 * updates.
 */
function tick(endpoints: number, requests: number) {
  const [from, to] = [replica('a', endpoints), replica('b', endpoints)];
  let [send, receive] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  let bytes = 0;
  for (let batch = 0; batch < BATCHES; batch++) {
    const releases = Array.from({ length: requests }, from.place);
    nowMs += 5;
    const began = performance.now();
    from.replicator.tick(nowMs);
    const sent = performance.now();
    const messages = from.link.sent.splice(0);
    for (const message of messages) to.replicator.receive(message, nowMs);
    const received = performance.now();
    send = Math.min(send, sent - began);
    if (requests === 0 || messages.length > 0) receive = Math.min(receive, received - sent);
    bytes = messages.reduce((sum, { length }) => sum + length, 0) || bytes;
    for (const release of releases) release();
  }
  return { send: 1_000 * send, receive: 1_000 * receive, bytes };
}

/** Least microseconds of an idle tick, over runs of a hundred. */
function idle(endpoints: number): number {
  const { replicator, link } = replica('a', endpoints);
  let least = Number.POSITIVE_INFINITY;
  for (let batch = 0; batch < BATCHES; batch++) {
    const began = performance.now();
    // In less than a heartbeat, so that nothing is sent.
    for (let i = 0; i < 100; i++) {
      nowMs += 0.001;
      replicator.tick(nowMs);
    }
    least = Math.min(least, (performance.now() - began) / 100);
    link.sent.length = 0;
  }
  return 1_000 * least;
}

for (const endpoints of [8, 100]) {
  const fixed = idle(endpoints);
  const [few, many] = [tick(endpoints, 5), tick(endpoints, 50)];
  const slope = (part: 'send' | 'receive') => (many[part] - few[part]) / 45;
  console.log(
    `${endpoints} endpoints: an idle tick ${fixed.toFixed(2)} us, at 200 ticks/s ` +
      `${((fixed * 200) / 1e4).toFixed(3)} % of a core`,
  );
  console.log(
    `  1,000 requests/s (5 in a tick): send ${few.send.toFixed(1)} us, receive ${few.receive.toFixed(1)} us, ` +
      `${few.bytes} bytes a tick`,
  );
  console.log(
    `  10,000 requests/s (50 in a tick): send ${many.send.toFixed(1)} us, receive ${many.receive.toFixed(1)} us, ` +
      `${many.bytes} bytes a tick`,
  );
  console.log(`  slope a request: send ${slope('send').toFixed(2)} us, receive ${slope('receive').toFixed(2)} us`);
}
process.exit(0);
