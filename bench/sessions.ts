// What sessions cost a decision: the same turns with sessions off and in shadow mode, beside 60,000 known sessions.

import { CapacityGate } from '../dist/src/core/capacity-gate.js';
import {
  attachCore,
  createPoolMemory,
  Decider,
  defaultPoolSizes,
  EndpointTable,
  ProgramTable,
} from '../dist/src/core/index.js';
import type { Operation } from '../dist/src/core/operations.js';
import type { Bench } from './bench.ts';

const profile: readonly Operation[] = [
  { code: 'OP_SCORE_QUEUE', weight: 2, parameters: [] },
  { code: 'OP_SCORE_PREFIX', weight: 3, parameters: [0, 8192, 16] },
  { code: 'OP_PICK_MAX_SCORE', weight: 1, parameters: [1] },
];

const ENDPOINTS = 8;
const BLOCK = 16;
const KNOWN = 60_000;
/** Sessions that take turns while it is measured, and blocks of their prompts: 20,000 tokens. */
const ACTIVE = 64;
const BLOCKS = 1_250;
const CHAT_BLOCKS = 20;

/** Hashes of a prompt, with all bits in use. */
function hashesOf(name: number, blocks: number): Uint8Array {
  const words = new BigUint64Array(blocks);
  let hash = BigInt(name) * 0x9e37_79b9_7f4a_7c15n + 1n;
  for (let i = 0; i < blocks; i++) {
    hash = BigInt.asUintN(64, (hash ^ (hash >> 29n)) * 0xbf58_476d_1ce4_e5b9n + BigInt(i));
    words[i] = hash;
  }
  return new Uint8Array(words.buffer);
}

/** @returns turns of known sessions, and requests that are none, one at each call */
function decisions(mode: 'off' | 'shadow', chat: boolean): () => void {
  const pool = createPoolMemory({ ...defaultPoolSizes, endpoints: 64, threads: 2 });
  const control = attachCore(pool, 0);
  const table = new EndpointTable(control);
  new ProgramTable(control).publish(0, profile, { inserts: true });
  for (let slot = 0; slot < ENDPOINTS; slot++) {
    table.open(slot, 1);
    table.setState(slot, 'live');
    table.publish(slot, { waiting: 0, running: 0, kvUsage: 0, blockTokens: BLOCK, blockCount: 1_000_000 }, 1);
  }
  const gate = new CapacityGate(control);
  gate.configure({ mode: 'requests', maxRequests: 1_000, maxTokens: 1 }, BLOCK, 1, 1);
  gate.sessions.configure({ mode, smallPrompt: 0.000_03, stretch: 0.1, maxWaitMs: 300_000 });
  const core = attachCore(pool, 1);
  const decider = new Decider(core, 1n);
  const at = core.call.hashesAddress() >>> 0;
  let nowMs = 1;
  const turn = (hashes: Uint8Array) => {
    core.bytes.set(hashes, at);
    const blocks = hashes.length / 8;
    const { ticket, ticketGeneration } = decider.decide({
      profile: 0,
      blocks,
      tail: false,
      blockTokens: BLOCK,
      promptTokens: blocks * BLOCK,
      outputTokens: 0,
      priority: 0,
      adapter: 'model',
      nowMs: nowMs++,
      subset: undefined,
      charged: true,
      explained: false,
      gate: { waitSlots: 0, held: undefined, blind: false },
    });
    decider.release(ticket, ticketGeneration);
  };
  for (let i = 0; i < KNOWN; i++) turn(hashesOf(i, 40));
  const prompts = Array.from({ length: ACTIVE }, (_, i) => hashesOf(KNOWN + i, chat ? CHAT_BLOCKS : BLOCKS));
  for (const prompt of prompts) turn(prompt);
  let next = 0;
  return () => {
    turn(prompts[next]!);
    next = (next + 1) % ACTIVE;
  };
}

/** Decisions of one run: a clock is read before and after each. */
const ROUND = 64;

export const benches: readonly Bench[] = [false, true].flatMap((chat) =>
  (['off', 'shadow'] as const).map((mode) => ({
    name: `sessions/${mode}/${chat ? 'chat' : 'turn'}`,
    async setup() {
      const run = decisions(mode, chat);
      return {
        opsPerRun: ROUND,
        run() {
          for (let i = 0; i < ROUND; i++) run();
        },
      };
    },
  })),
);
