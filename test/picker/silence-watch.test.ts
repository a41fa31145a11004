import { beforeEach, describe, expect, it } from 'vitest';
import { CORE } from '../../dist/src/core/core-names.js';
import { Hearings } from '../../dist/src/core/hearings.js';
import { LoadTable } from '../../dist/src/core/load-table.js';
import { SampleReader } from '../../dist/src/core/sample-reader.js';
import { SilenceTable } from '../../dist/src/core/silence-table.js';
import type { AnswerSign } from '../../dist/src/core/types.js';
import { type SilenceNews, SilenceWatch, silenceLog } from '../../dist/src/picker/control/silence-watch.js';
import { makePool, pickMax, plainRequest } from '../core/pool.ts';
import { endpointOf } from '../pool/endpoints.ts';

const START = 1_000_000;
/** Signals of an engine, by slot. */
let signals: { waiting: number; running: number; kvUsage: number }[];
let now: number;
let news: SilenceNews[];

beforeEach(() => {
  now = START;
  news = [];
  signals = Array.from({ length: 4 }, () => ({ waiting: 0, running: 1, kvUsage: 0.1 }));
});

/** A watch over four endpoints in a real core, with a clock of the test's. */
function watched() {
  const pool = makePool([pickMax], signals);
  const hearings = new Hearings(pool.core);
  const assignments = signals.map((_, slot) => ({
    slot,
    generation: 1,
    endpoint: endpointOf(`e${slot}`, '10.0.0.1', 1),
  }));
  const watch = new SilenceWatch({
    table: pool.table,
    silences: new SilenceTable(pool.control),
    samples: new SampleReader(pool.control),
    assignments: () => assignments,
    now: () => now,
    report: (one) => news.push(one),
  });
  const decide = (slots: readonly number[] | undefined) =>
    pool.decider.decide({ ...plainRequest, promptTokens: 200, subset: slots, nowMs: now });
  const charge = (slot: number, sign: AnswerSign = 'stream') => {
    const { ticket, ticketGeneration: generation } = decide([slot]);
    hearings.expect(ticket, sign, undefined);
    return { slot, ticket, generation };
  };
  type Held = ReturnType<typeof charge>;
  const hear = ({ ticket, slot }: Held) => hearings.heard(ticket, slot, 1, now);
  const end = (held: Held, firstOutputMs = 100) => {
    hear(held);
    const measures = {
      outcome: 'completed',
      firstOutputMs,
      perTokenMs: 10,
      durationMs: 600,
      outputTokens: 50,
    } as const;
    pool.decider.noteSample(held.ticket, held.generation, { ...measures, promptTokens: 200, cachedTokens: 0 });
    pool.decider.release(held.ticket, held.generation);
  };
  /** Looks four times a second, with fresh signals, for so many seconds. */
  const pass = (seconds: number) => {
    for (let i = 0; i < seconds * 4; i++) {
      now += 250;
      for (const [slot, signal] of signals.entries()) pool.table.publish(slot, signal, now);
      watch.checkAll();
    }
  };
  /** Answers from every endpoint, so that it is known what answers take. */
  const learn = () => {
    for (let slot = 0; slot < 4; slot++) for (let i = 0; i < 10; i++) end(charge(slot));
    pass(1);
  };
  const state = (slot: number) => pool.table.read(slot);
  const picked = (count: number) => new Set(Array.from({ length: count }, () => decide(undefined).slots[0]));
  return { ...pool, watch, charge, hear, end, pass, learn, state, picked };
}

describe('the watch over silent endpoints', () => {
  it('the watch takes an endpoint out whose two requests get no byte, and back with the first byte', () => {
    const { charge, hear, pass, learn, state, picked, watch } = watched();
    learn();
    const [one] = [charge(2), charge(2)];
    pass(9);
    expect(state(2)).toMatchObject({ ejection: 0, silent: false });
    pass(3);
    expect(state(2)).toMatchObject({ ejection: 1, silent: true });
    expect(picked(20)).toEqual(new Set([0, 1, 3]));
    expect(watch.silences).toBe(1);
    now += 10;
    hear(one);
    pass(1);
    expect(state(2)).toMatchObject({ ejection: 0, silent: false });
    expect(news.map(({ kind }) => kind)).toEqual(['out', 'back']);
  });

  it('the watch takes an endpoint out whose clients give up before the least quiet time has passed', () => {
    const { charge, pass, learn, state, decider } = watched();
    learn();
    for (let i = 0; i < 6; i++) {
      const { ticket, generation } = charge(2);
      pass(3);
      const none = { firstOutputMs: undefined, perTokenMs: undefined, outputTokens: undefined };
      const rest = { promptTokens: undefined, cachedTokens: undefined };
      decider.noteSample(ticket, generation, { outcome: 'aborted', durationMs: 3_000, ...none, ...rest });
      decider.release(ticket, generation);
    }
    pass(1);
    expect(state(2)).toMatchObject({ ejection: 1, silent: true });
  });

  it('the watch judges sooner when an engine that was busy says that it has nothing to do', () => {
    const { charge, pass, learn, state } = watched();
    charge(1, 'end');
    learn();
    signals[1] = { waiting: 0, running: 0, kvUsage: 0 };
    charge(1, 'end');
    pass(4);
    expect(state(1).silent).toBe(false);
    pass(3);
    expect(state(1).silent).toBe(true);
  });

  it('the watch does not believe an engine that has never shown a running request', () => {
    signals[1] = { waiting: 0, running: 0, kvUsage: 0 };
    const { charge, pass, learn, state } = watched();
    learn();
    charge(1, 'end');
    charge(1, 'end');
    pass(29);
    expect(state(1).silent).toBe(false);
  });

  it('the watch leaves every endpoint in whose requests are no evidence', () => {
    const { charge, pass, learn, state } = watched();
    learn();
    for (let slot = 0; slot < 4; slot++) for (let i = 0; i < 3; i++) charge(slot, slot % 2 === 0 ? 'nothing' : 'later');
    pass(120);
    for (let slot = 0; slot < 4; slot++) expect(state(slot).silent).toBe(false);
  });

  it('the watch judges nobody while no answer was ever seen to its end', () => {
    const { charge, pass, state } = watched();
    charge(0);
    charge(0);
    pass(300);
    expect(state(0).silent).toBe(false);
  });

  it('the watch never takes out more than half of the pool, and shows the others as silent', () => {
    const { charge, pass, learn, state, table } = watched();
    learn();
    for (let slot = 0; slot < 4; slot++) for (let i = 0; i < 2; i++) charge(slot);
    pass(12);
    expect(table.ejected).toBe(2);
    expect([0, 1, 2, 3].filter((slot) => state(slot).silent)).toHaveLength(4);
    expect(news.map(({ kind }) => kind).sort()).toEqual(['in', 'in', 'out', 'out']);
  });

  it('the head of an answer brings no silent endpoint back', () => {
    const { charge, pass, learn, state, decider } = watched();
    learn();
    charge(3);
    charge(3);
    pass(12);
    decider.noteOutcome(3, 1, 'failed', now);
    expect(state(3)).toMatchObject({ ejection: 1, silent: true });
  });

  it('the watch lets one probe at a time through, puts off the next, and gives up one that hangs', () => {
    const { charge, pass, learn, state, decider, picked } = watched();
    learn();
    charge(0);
    charge(0);
    pass(12);
    const share = () => picked(40).has(0);
    expect(share()).toBe(true);
    expect(state(0).ejection).toBe(2);
    expect(share()).toBe(false);
    // The probe of `picked` is no evidence, since nobody said what it expects; a client's is.
    pass(30);
    expect(state(0).ejection).toBe(2);
    expect(decider.isCandidate(0)).toBe(false);
  });

  it('the watch gives up a probe that gets no byte, and a probe later brings the endpoint back', () => {
    const { charge, end, pass, learn, state, decider, control } = watched();
    learn();
    charge(0);
    charge(0);
    pass(12);
    const probe = () => {
      for (let i = 0; i < 40; i++) {
        const { ticket, ticketGeneration, slots } = decider.decide({ ...plainRequest, promptTokens: 200, nowMs: now });
        if (slots[0] === 0) {
          new Hearings(control).expect(ticket, 'stream', undefined);
          return { slot: 0, ticket, generation: ticketGeneration };
        }
      }
      return undefined;
    };
    const first = probe();
    expect(first).toBeDefined();
    pass(11);
    expect(state(0).ejection).toBe(1);
    expect(probe()).toBeUndefined();
    pass(30);
    const second = probe();
    expect(second).toBeDefined();
    // The end of the first must not end the second.
    decider.release(first!.ticket, first!.generation);
    expect(state(0).ejection).toBe(2);
    end(second!);
    pass(1);
    expect(state(0)).toMatchObject({ ejection: 0, silent: false });
  });

  it('a silent endpoint is no news for other replicas', () => {
    const { charge, pass, learn, control } = watched();
    learn();
    charge(1);
    charge(1);
    pass(12);
    expect(new LoadTable(control).isEjected(1)).toBe(false);
  });

  it('an endpoint that drains is silent no more', () => {
    const { charge, pass, learn, state, table } = watched();
    learn();
    charge(1);
    charge(1);
    pass(12);
    table.setState(1, 'draining');
    pass(1);
    expect(state(1)).toMatchObject({ ejection: 0, silent: false });
  });
});

describe('the log of silences', () => {
  it('the log says how long an endpoint was quiet, and the remedy', () => {
    const lines: [object, string][] = [];
    const note = (fields: object, text: string) => lines.push([fields, text]);
    const log = silenceLog({ warn: note, info: note });
    const endpoint = endpointOf('a', '10.0.0.1', 8000);
    log({ kind: 'out', endpoint, silence: { overdue: 3, quietMs: 12_340, allowedMs: 10_000, idle: true } });
    log({ kind: 'back', endpoint, silentMs: 61_000 });
    expect(lines[0]![0]).toMatchObject({
      requestsOverdue: 3,
      quietSeconds: 12.3,
      allowedSeconds: 10,
      engineSaysIdle: true,
    });
    expect(lines[0]![1]).toContain('restart its model server');
    expect(lines[1]).toMatchObject([{ silentSeconds: 61 }, 'endpoint answers again: it gets new requests']);
  });
});

describe('the constants of the core', () => {
  it('a hearing is what the shards write it as', () => {
    expect(CORE.HEARING_BYTES).toBe(16);
  });
});
