import { setTimeout as pause } from 'node:timers/promises';
import type { NatsServer } from '../nats-server.ts';
import type { ReplicaProcess } from './replica-process.ts';
import type { RequestBook } from './request-book.ts';

/** Parts that faults act on. */
export interface Faulty {
  readonly nats: NatsServer;
  readonly natsState: { up: boolean };
  readonly book: RequestBook;
  /** A number from `min` to `max`. */
  readonly between: (min: number, max: number) => number;
}

/** A fault that ends by itself. Resolves when it is over. */
type Fault = (replica: ReplicaProcess, faulty: Faulty) => Promise<void>;

/** Longest delay of a message on one side, in milliseconds: two of them and the silence are less than the bound. */
const DELAY_MS_MAX = 60;

async function delay({ proxy }: ReplicaProcess, { between }: Faulty): Promise<void> {
  proxy.delayMs = between(5, DELAY_MS_MAX);
  await pause(between(300, 3_000));
  proxy.delayMs = 0;
}

/** Loses what is under way: a delay holds messages back, and the cut drops them. */
async function loss({ proxy }: ReplicaProcess, { between }: Faulty): Promise<void> {
  proxy.delayMs = between(5, DELAY_MS_MAX);
  for (let cuts = between(1, 5); cuts > 0; cuts--) {
    proxy.cut();
    await pause(between(50, 700));
  }
  proxy.delayMs = 0;
}

async function partition({ proxy }: ReplicaProcess, { between }: Faulty): Promise<void> {
  proxy.partition();
  await pause(between(100, 3_000));
  proxy.heal();
}

async function slowConsumer({ proxy }: ReplicaProcess, { between }: Faulty): Promise<void> {
  proxy.stall(true, 'client');
  await pause(between(200, 5_000));
  proxy.stall(false, 'client');
}

async function stuckSender({ proxy }: ReplicaProcess, { between }: Faulty): Promise<void> {
  proxy.stall(true, 'server');
  await pause(between(200, 5_000));
  proxy.stall(false, 'server');
}

async function killed(replica: ReplicaProcess, { book, between }: Faulty): Promise<void> {
  await replica.end('SIGKILL');
  book.endAll(replica.name);
  await pause(between(0, 1_500));
  await replica.start();
}

async function restarted(replica: ReplicaProcess, { book, between }: Faulty): Promise<void> {
  await replica.end('SIGTERM');
  book.endAll(replica.name);
  await pause(between(0, 500));
  await replica.start();
}

async function hung(replica: ReplicaProcess, { between }: Faulty): Promise<void> {
  replica.stop();
  await pause(between(300, 3_000));
  replica.resume();
}

async function natsRestarted(_replica: ReplicaProcess, { nats, natsState, between }: Faulty): Promise<void> {
  natsState.up = false;
  await nats.stop();
  await pause(between(0, 2_500));
  await nats.restart();
  natsState.up = true;
}

/** Every kind of fault by its name. */
export const FAULTS: Readonly<Record<string, Fault>> = {
  delay,
  loss,
  partition,
  'slow consumer': slowConsumer,
  'stuck sender': stuckSender,
  'killed picker': killed,
  'restarted picker': restarted,
  'hung picker': hung,
  'restarted nats-server': natsRestarted,
};
