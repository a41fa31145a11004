// What sessions cost a decision: the same turns with sessions off, in shadow mode and on, in turns in one run, beside
// few sessions and beside as many as the core can tell apart.

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
import { type Report, round } from './bench.ts';

const profile: readonly Operation[] = [
  { code: 'OP_SCORE_QUEUE', weight: 2, parameters: [] },
  { code: 'OP_SCORE_PREFIX', weight: 3, parameters: [0, 8192, 16] },
  { code: 'OP_PICK_MAX_SCORE', weight: 1, parameters: [1] },
];

const MODES = ['off', 'shadow', 'on'] as const;
const ENDPOINTS = 8;
const BLOCK = 16;
/** Other sessions that are known, in blocks of their one prompt, and how many of them. */
const KNOWN_BLOCKS = 40;
const KNOWN = { few: 0, '65536': 65_536 } as const;
/** Sessions that take turns while it is measured: a prompt of 20,000 tokens grows by 2,000 a turn, ten turns each. */
const ACTIVE = 64;
const FIRST_BLOCKS = 1_250;
const GROWN_BLOCKS = 125;
const TURNS = 10;
const CHAT_BLOCKS = 20;
/** Looks at the other sessions after an hour; each lets some thousand of them lapse. */
const HOUR_MS = 3_600_000;
const TICKS = 40;
/** Milliseconds of the pool's clock, one a decision: after them an idle session lapses, and between two looks at it. */
const LEASE_MS = 10_000;
const LOOK_MS = 500;
/** Decisions of one round: a clock is read before and after each. */
const ROUND = 32;
/** Rounds of each mode that are not counted: compiled code and caches are warm then. */
const WARM_UP = 60;

/** Hashes of a prompt, with all bits in use (splitmix in two halves). */
function hashesOf(name: number, blocks: number): Uint8Array {
  const words = new Uint32Array(blocks * 2);
  let state = Math.imul(name + 1, 0x9e37_79b9);
  for (let i = 0; i < words.length; i++) {
    state = (state + 0x6d2b_79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    words[i] = mixed ^ (mixed >>> 14);
  }
  return new Uint8Array(words.buffer);
}

/** Turns of the active sessions, or requests that are none. */
interface Decisions {
  /** Makes the texts of the sessions that begin in the next round, and looks at idle ones. */
  readonly prepare: () => void;
  readonly round: () => void;
}

function decisions(mode: (typeof MODES)[number], known: number, chat: boolean): Decisions {
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
  const rule = { mode, smallPrompt: 0.000_03, stretch: 0.1, maxWaitMs: 300_000, idleLeaseMs: LEASE_MS };
  gate.sessions.configure(rule);
  const core = attachCore(pool, 1);
  const decider = new Decider(core, 1n);
  const at = core.call.hashesAddress() >>> 0;
  let nowMs = 1;
  const turn = (hashes: Uint8Array, blocks: number) => {
    core.bytes.set(hashes.subarray(0, blocks * 8), at);
    const { status, ticket, ticketGeneration } = decider.decide({
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
    if (status !== 'decided') throw new Error(`a turn has no endpoint (${status}): what is measured is no cost of one`);
    decider.release(ticket, ticketGeneration);
  };
  for (let i = 0; i < known; i++) turn(hashesOf(i, KNOWN_BLOCKS), KNOWN_BLOCKS);
  // Most of them have ended: a session that comes takes the entry of one that has lapsed.
  nowMs += HOUR_MS;
  for (let i = 0; i < TICKS; i++) gate.sessions.tick(nowMs);
  const texts: Uint8Array[] = [];
  let next = 0;
  let lookedMs = nowMs;
  const turnOf = (at: number) => Math.floor(at / ACTIVE) % TURNS;
  return {
    prepare() {
      // As the control thread does: sessions that have ended give their caches back.
      if (nowMs >= lookedMs + LOOK_MS) {
        lookedMs = nowMs;
        gate.sessions.tick(nowMs);
      }
      for (let at = next; at < next + ROUND; at++) {
        if (turnOf(at) !== 0 && texts.length >= ACTIVE) continue;
        texts[at % ACTIVE] = hashesOf(1_000_000 + at, FIRST_BLOCKS + (TURNS - 1) * GROWN_BLOCKS);
      }
    },
    round() {
      for (const end = next + ROUND; next < end; next++) {
        turn(texts[next % ACTIVE]!, chat ? CHAT_BLOCKS : FIRST_BLOCKS + turnOf(next) * GROWN_BLOCKS);
      }
    },
  };
}

/** Times of rounds of each mode, in ns a decision, in turns. */
function measure(known: number, chat: boolean, timeMs: number): readonly number[][] {
  const runs = MODES.map((mode) => decisions(mode, known, chat));
  const times: number[][] = MODES.map(() => []);
  const end = performance.now() + timeMs;
  for (let count = -WARM_UP; count < 100 || performance.now() < end; count++) {
    for (const [at, { prepare, round }] of runs.entries()) {
      prepare();
      const start = performance.now();
      round();
      if (count >= 0) times[at]!.push(((performance.now() - start) * 1e6) / ROUND);
    }
  }
  return times.map((each) => each.sort((a, b) => a - b));
}

async function* report(timeMs: number): AsyncGenerator<object> {
  for (const kind of ['turn', 'chat'] as const) {
    for (const [name, known] of Object.entries(KNOWN)) {
      const times = measure(known, kind === 'chat', timeMs);
      const [off] = times.map((each) => each[each.length >> 1]!);
      for (const [at, mode] of MODES.entries()) {
        const each = times[at]!;
        const median = each[each.length >> 1]!;
        const p99 = each[Math.floor(each.length * 0.99)]!;
        const of = { median: round(median), p99: round(p99), unit: 'ns', timesOff: round(median / off!) };
        yield { name: `sessions/${mode}/${name}/${kind}`, ...of, runs: each.length };
      }
    }
  }
}

export const reports: readonly Report[] = [{ name: 'sessions/cost', timeMs: 3_000, run: report }];
