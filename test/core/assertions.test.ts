import { describe, expect, it } from 'vitest';
import type { CoreAssertions } from '../../dist/src/core/assertions.js';
import { CORE } from '../../dist/src/core/core-names.js';
import { attachCore, createPoolMemory, loadCoreModule } from '../../dist/src/core/memory.js';
import { smallSizes } from './pool.ts';

const module = loadCoreModule('debug');
const { STATE_FREE, STATE_LIVE, STATE_DRAINING, WAIT_SLOT_FREE, WAIT_SLOT_WAITING } = CORE;
const { endpoints, threads, scans } = smallSizes;

/**
 * Assertions of a thread of a pool: slot 1 is open and free, slot 2 live, slot 3 draining, all others never open; wait
 * slot 2 of thread 1 waits.
 */
function assertionsOf(thread: number): CoreAssertions {
  const memory = createPoolMemory(smallSizes, { module, hashSeed: 7n });
  const { call, view } = attachCore(memory, 0);
  for (const slot of [1, 2, 3]) call.endpointOpen(slot, 1);
  call.endpointState(2, STATE_LIVE);
  call.endpointState(3, STATE_LIVE);
  call.endpointState(3, STATE_DRAINING);
  view.setUint32((call.waitSlotAddress(1, 2) >>> 0) + CORE.WAIT_SLOT_STATE, WAIT_SLOT_WAITING, true);
  return attachCore(memory, thread).asserts!;
}

describe('an assertion of src/core', () => {
  it.each<[what: string, check: (asserts: CoreAssertions) => void]>([
    ['a number below its bound', (asserts) => asserts.index('entry', 6, 7)],
    ['number 0', (asserts) => asserts.index('entry', 0, 7)],
    ['the last endpoint slot', (asserts) => asserts.slots([0, endpoints - 1])],
    ['the control thread', (asserts) => asserts.control()],
    ['an open endpoint that becomes live', (asserts) => asserts.move(1, STATE_LIVE)],
    ['an open endpoint that drains at once', (asserts) => asserts.move(1, STATE_DRAINING)],
    ['a live endpoint that stays live', (asserts) => asserts.move(2, STATE_LIVE)],
    ['a live endpoint that leaves', (asserts) => asserts.move(2, STATE_FREE)],
    ['a draining endpoint that becomes live again', (asserts) => asserts.move(3, STATE_LIVE)],
    ['a draining endpoint that leaves', (asserts) => asserts.move(3, STATE_FREE)],
    ['a slot that was never open and stays free', (asserts) => asserts.move(4, STATE_FREE)],
    ['a wait slot in one of two states', (asserts) => asserts.waitSlot(1, 2, [WAIT_SLOT_FREE, WAIT_SLOT_WAITING])],
    ['a free wait slot of the last thread', (asserts) => asserts.waitSlot(threads - 1, scans - 1, [WAIT_SLOT_FREE])],
  ])('an assertion of src/core lets %s pass', (_what, check) => {
    expect(() => check(assertionsOf(0))).not.toThrow();
  });

  it.each<[what: string, check: (asserts: CoreAssertions) => void]>([
    ['entry 7 is below 7', (asserts) => asserts.index('entry', 7, 7)],
    ['entry -1 is below 7', (asserts) => asserts.index('entry', -1, 7)],
    ['entry 1.5 is below 7', (asserts) => asserts.index('entry', 1.5, 7)],
    [`endpoint slot ${endpoints} is below ${endpoints}`, (asserts) => asserts.slots([0, endpoints])],
    [`endpoint slot ${endpoints} is below ${endpoints}`, (asserts) => asserts.move(endpoints, STATE_FREE)],
    ['slot 4 is open before it gets state 1', (asserts) => asserts.move(4, STATE_LIVE)],
    [`thread ${threads} is below ${threads}`, (asserts) => asserts.waitSlot(threads, 0, [WAIT_SLOT_FREE])],
    [`wait slot ${scans} is below ${scans}`, (asserts) => asserts.waitSlot(0, scans, [WAIT_SLOT_FREE])],
    [
      `wait slot 2 of thread 1 has a state of ${WAIT_SLOT_FREE}, not ${WAIT_SLOT_WAITING}`,
      (asserts) => asserts.waitSlot(1, 2, [WAIT_SLOT_FREE]),
    ],
  ])('an assertion of src/core stops the thread unless %s', (what, check) => {
    expect(() => check(assertionsOf(0))).toThrow(`src/core: it does not hold that ${what}`);
  });

  it('an assertion of src/core stops a shard that moves an endpoint', () => {
    expect(() => assertionsOf(2).move(2, STATE_DRAINING)).toThrow('the control thread writes here, not thread 2');
  });

  it('an assertion of src/core stops an unknown move of an endpoint', () => {
    expect(() => assertionsOf(0).move(2, 7)).toThrow('slot 2 may go from state 1 to 7');
  });
});
