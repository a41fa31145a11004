import { describe, expect, test } from 'vitest';
import type { AdmissionRule, MakeAdmissionRule } from '../../../../dist/tools/simulator/fleet/admission-rule.js';
import { EventQueue } from '../../../../dist/tools/simulator/fleet/events.js';
import { llmDThunderAgent } from '../../../../dist/tools/simulator/fleet/llm-d-thunder-agent.js';
import { thunderAgent } from '../../../../dist/tools/simulator/fleet/thunder-agent.js';

/** A rule over endpoints of 1,000 tokens each; turns go to the first endpoint that it allows. */
class Ruled {
  readonly clock = new EventQueue();
  readonly rule: AdmissionRule;
  /** Sessions whose turn went on, with the endpoints that it might take. */
  readonly placed: (readonly [session: number, slots: readonly number[]])[] = [];

  constructor(make: MakeAdmissionRule, endpoints = 1) {
    const slots = Array.from({ length: endpoints }, (_, slot) => slot);
    this.rule = make({ capacities: slots.map(() => 1_000), clock: this.clock });
    this.rule.endpointsChanged(new Set(slots));
  }

  ask(session: number, promptTokens: number): void {
    this.rule.ask({ session, promptTokens }, (slots) => {
      this.placed.push([session, slots]);
      this.rule.sent(session, slots[0]!);
    });
  }

  /** A turn from its question to its answer of `output` tokens. */
  turn(session: number, promptTokens: number, { output = 0, last = false } = {}): void {
    this.ask(session, promptTokens);
    this.rule.ended(session, output, last);
  }

  get sessions(): number[] {
    return this.placed.map(([session]) => session);
  }

  until(ms: number): void {
    let isThere = false;
    this.clock.at(ms, () => {
      isThere = true;
    });
    while (!isThere && this.clock.next());
  }
}

describe('ThunderAgent’s rule', () => {
  test('a turn of an active program goes to its endpoint', () => {
    const ruled = new Ruled(thunderAgent(true), 2);
    ruled.turn(1, 500);
    ruled.turn(2, 300);
    ruled.ask(1, 600);
    expect(ruled.placed).toEqual([
      [1, [0]],
      [2, [1]],
      [1, [0]],
    ]);
  });

  test('a new program is held while programs between turns fill the endpoint', () => {
    const ruled = new Ruled(thunderAgent(true));
    ruled.turn(1, 600);
    ruled.ask(2, 400);
    ruled.until(60_000);
    expect(ruled.sessions).toEqual([1]);
  });

  test('a held program goes on at the next look after the end of another one was told', () => {
    const ruled = new Ruled(thunderAgent(true));
    ruled.ask(1, 600);
    ruled.ask(2, 400);
    ruled.rule.ended(1, 10, true);
    expect(ruled.sessions).toEqual([1]);
    ruled.until(5_001);
    expect(ruled.sessions).toEqual([1, 2]);
  });

  test('an end that nobody tells leaves the endpoint full', () => {
    const ruled = new Ruled(thunderAgent(false));
    ruled.ask(1, 600);
    ruled.ask(2, 400);
    ruled.rule.ended(1, 10, true);
    ruled.until(60_000);
    expect(ruled.sessions).toEqual([1]);
  });

  test('the smallest program between turns is paused when the endpoint is too full', () => {
    const ruled = new Ruled(thunderAgent(true));
    ruled.turn(1, 300);
    ruled.turn(2, 350);
    ruled.ask(2, 800);
    ruled.rule.sampled(0, 800);
    ruled.until(5_001);
    ruled.ask(1, 310);
    ruled.ask(2, 810);
    expect(ruled.sessions).toEqual([1, 2, 2, 2]);
  });

  test('a turn that was held for 30 minutes goes on without room', () => {
    const ruled = new Ruled(thunderAgent(true));
    ruled.turn(1, 900);
    ruled.ask(2, 400);
    ruled.until(1_799_999);
    expect(ruled.sessions).toEqual([1]);
    ruled.until(1_800_001);
    expect(ruled.sessions).toEqual([1, 2]);
  });
});

describe('the rule of llm-d’s thunder-agent', () => {
  test('a turn of an admitted session goes to its endpoint, whatever else is there', () => {
    const ruled = new Ruled(llmDThunderAgent, 2);
    ruled.turn(1, 500);
    ruled.ask(1, 1_500);
    expect(ruled.placed).toEqual([
      [1, [0, 1]],
      [1, [0]],
    ]);
  });

  test('a new session is held until the lease of an idle one is over, which then gives up its room', () => {
    const ruled = new Ruled(llmDThunderAgent);
    ruled.turn(1, 700);
    ruled.ask(2, 400);
    ruled.until(29_999);
    expect(ruled.sessions).toEqual([1]);
    ruled.until(30_001);
    expect(ruled.sessions).toEqual([1, 2]);
  });

  test('a session that gave up its room waits for room on its own endpoint, and goes before new ones', () => {
    const ruled = new Ruled(llmDThunderAgent, 2);
    ruled.turn(1, 700);
    ruled.until(31_000);
    ruled.ask(2, 900);
    ruled.ask(3, 900);
    ruled.ask(1, 800);
    ruled.ask(4, 100);
    expect(ruled.sessions).toEqual([1, 2, 3, 4]);
    const ofFirst = ruled.placed[2]![1][0]!;
    expect(ofFirst).toBe(0);
    ruled.rule.ended(3, 0, true);
    ruled.until(62_000);
    expect(ruled.placed.at(-1)).toEqual([1, [0]]);
  });

  test('a client that leaves gives its held turn up', () => {
    const ruled = new Ruled(llmDThunderAgent);
    ruled.turn(1, 700);
    ruled.ask(2, 400);
    ruled.rule.leave(2);
    ruled.until(60_000);
    expect(ruled.sessions).toEqual([1]);
  });
});
