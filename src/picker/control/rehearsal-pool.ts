import type { SlotAssignment } from '../../contract/endpoint.js';
import { EndpointTable } from '../../core/endpoint-table.js';
import { attachCore, createPoolMemory, defaultPoolSizes } from '../../core/memory.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import type { CompiledScheduling } from '../../scheduling/program.js';
import type { RehearsalPool } from '../messages.js';
import { ProgramPublisher } from './program-publisher.js';

const ENDPOINTS = 8;
const INDEX_BLOCKS = 16_384;
const SCANS = 256;

/**
 * The configured programs over endpoints that do not exist, in memory of their own.
 * @param memory settings of it; block hashes have a new seed unless they give one
 */
export function rehearsalPool(
  scheduling: CompiledScheduling,
  shards: number,
  timeMs: number,
  memory: { readonly hashSeed?: bigint } = {},
): RehearsalPool {
  const sizes = { endpoints: ENDPOINTS, indexBlocks: INDEX_BLOCKS, threads: 1 + shards, scans: SCANS };
  const pool = createPoolMemory({ ...defaultPoolSizes, ...sizes }, memory);
  const core = attachCore(pool, 0);
  const table = new EndpointTable(core);
  const programs = new ProgramPublisher(core);
  const placed = programs.place(scheduling);
  const slots = Array.from({ length: ENDPOINTS }, (_, slot) => slot);
  for (const slot of slots) {
    table.open(slot, 1);
    table.setState(slot, 'live');
    table.publish(slot, { waiting: slot % 3, running: slot, kvUsage: slot / (2 * ENDPOINTS) }, poolClockMs());
  }
  for (let mask = 0; mask < placed.masks.length; mask++) table.setMask(placed.firstMask + mask, slots);
  programs.publish(placed);
  return { pool, timeMs, assignments: slots.map(assignment) };
}

function assignment(slot: number): SlotAssignment {
  const name = `rehearsal-${slot}`;
  const endpoint = {
    id: `rehearsal/${name}`,
    name,
    namespace: 'rehearsal',
    address: '192.0.2.1',
    port: 1 + slot,
    labels: {},
  };
  return { slot, generation: 1, endpoint };
}
