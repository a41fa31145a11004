import {
  attachCore,
  createPoolMemory,
  Decider,
  type DecisionRequest,
  type EndpointSignals,
  EndpointTable,
  loadCoreModule,
  type Operation,
  type PoolSizes,
  ProgramTable,
} from '../../dist/src/core/index.js';
import type { OperationName } from '../../dist/src/core/operations.js';

export const smallSizes: PoolSizes = {
  endpoints: 64,
  indexBlocks: 4096,
  requests: 256,
  chainBlocks: 256,
  threads: 6,
  scans: 16,
  telemetryBytes: 65_536,
};

/** A small pool with live endpoints and one profile, and a decider on thread 1. */
export function makePool(
  operations: readonly Operation[],
  signals: readonly EndpointSignals[],
  sizes = smallSizes,
  module = loadCoreModule(),
) {
  const memory = createPoolMemory(sizes, { hashSeed: 7n, module });
  const control = attachCore(memory, 0);
  const table = new EndpointTable(control);
  const programs = new ProgramTable(control);
  programs.publish(0, operations, { inserts: false });
  for (const [slot, signal] of signals.entries()) {
    table.open(slot, 1);
    table.setState(slot, 'live');
    if (Object.keys(signal).length > 0) table.publish(slot, signal, 1);
  }
  const core = attachCore(memory, 1);
  const decider = new Decider(core, 42n);
  return { memory, control, table, programs, core, decider };
}

export const plainRequest: DecisionRequest = {
  profile: 0,
  blocks: 0,
  tail: false,
  blockTokens: 64,
  promptTokens: 0,
  outputTokens: 0,
  priority: 0,
  adapter: '',
  nowMs: 0,
  subset: undefined,
  charged: true,
  explained: false,
};

export function scorer(code: OperationName, weight = 1, ...parameters: number[]): Operation {
  return { code, weight, parameters };
}

export const pickMax = scorer('OP_PICK_MAX_SCORE', 1, 1);
