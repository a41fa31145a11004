// What the gate costs a decision that it lets through: the same decision with the gate off and on, in one run.

import { CapacityGate, type GateSettings } from '../dist/src/core/capacity-gate.js';
import {
  attachCore,
  createPoolMemory,
  Decider,
  defaultPoolSizes,
  EndpointTable,
  ProgramTable,
} from '../dist/src/core/index.js';
import type { Operation } from '../dist/src/core/operations.js';

const profile: readonly Operation[] = [
  { code: 'OP_SCORE_QUEUE', weight: 2, parameters: [] },
  { code: 'OP_SCORE_KV_USAGE', weight: 2, parameters: [] },
  { code: 'OP_PICK_MAX_SCORE', weight: 1, parameters: [1] },
];

const modes: Readonly<Record<string, GateSettings>> = {
  off: { mode: 'off' },
  learned: { mode: 'learned' },
  concurrency: { mode: 'requests', maxRequests: 100, maxTokens: 1 },
  utilization: { mode: 'utilization', queueThreshold: 5, usageThreshold: 0.8, stalenessMs: 1e9 },
};

/**
 * One decision, charged and released again.
 * @param busy three requests are in flight to every endpoint, and the sizes of the KV caches are known
 */
function decision(endpoints: number, settings: GateSettings, busy: boolean): () => void {
  const pool = createPoolMemory({ ...defaultPoolSizes, endpoints, threads: 2 });
  const control = attachCore(pool, 0);
  const table = new EndpointTable(control);
  new ProgramTable(control).publish(0, profile, { inserts: false });
  for (let slot = 0; slot < endpoints; slot++) {
    table.open(slot, 1);
    table.setState(slot, 'live');
    const cache = busy ? { blockTokens: 16, blockCount: 20_000 } : {};
    table.publish(slot, { waiting: slot % 4, running: slot % 13, kvUsage: (slot % 10) / 20, ...cache }, 1);
  }
  new CapacityGate(control).configure(settings, 64, 1, 1);
  const decider = new Decider(attachCore(pool, 1), 1n);
  const request = {
    profile: 0,
    blocks: 0,
    tail: false,
    blockTokens: 64,
    promptTokens: 100,
    outputTokens: 0,
    priority: 0,
    adapter: 'model',
    nowMs: 1,
    subset: undefined,
    charged: true,
    explained: false,
    gate: { waitSlots: 0, held: undefined, blind: false },
  };
  for (let i = 0; busy && i < endpoints * 3; i++) decider.decide(request);
  return () => {
    const { ticket, ticketGeneration } = decider.decide(request);
    decider.release(ticket, ticketGeneration);
  };
}

/** Decisions of one run: a clock is read before and after each. */
const ROUND = 100;

export const benches = [8, 64].flatMap((endpoints) =>
  [false, true].flatMap((busy) =>
    Object.entries(modes).map(([mode, settings]) => ({
      name: `gate/${mode}/${endpoints}${busy ? '-busy' : ''}`,
      async setup() {
        const run = decision(endpoints, settings, busy);
        return {
          opsPerRun: ROUND,
          run() {
            for (let i = 0; i < ROUND; i++) run();
          },
        };
      },
    })),
  ),
);
