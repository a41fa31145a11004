import { describe, expect, it } from 'vitest';
import type { Hearings } from '../../dist/src/core/hearings.js';
import { type Decider, type Measures, SampleReader, type TrainingSample } from '../../dist/src/core/index.js';
import { LedgerCharge, StagedCharge } from '../../dist/src/scheduling/charges.js';
import type { AnswerMeasures, Placement } from '../../dist/src/scheduling/decision.js';
import { EndpointDirectory } from '../../dist/src/scheduling/endpoint-directory.js';
import { CoreScheduler, type SchedulerOptions } from '../../dist/src/scheduling/scheduler.js';
import { makePool, pickMax } from '../core/pool.js';
import { DECIDE } from '../serve/default-sections.ts';
import { singleProfile, singleProfileSettings } from './single-profile.ts';

/** A scheduler over one endpoint, with a clock that the test sets. */
function scheduling(options: Partial<SchedulerOptions> = {}) {
  const { control, decider } = makePool([pickMax], [{}]);
  const reader = new SampleReader(control);
  const clock = { ms: 1000 };
  const directory = new EndpointDirectory();
  const endpoint = { id: 'a', name: 'a', address: '10.0.0.1', port: 80, labels: {} };
  directory.apply([{ slot: 0, generation: 1, endpoint } as never], []);
  const scheduler = new CoreScheduler({
    decider,
    directory,
    ...singleProfile,
    prompts: { chain: () => ({ blocks: 0, tail: false }), noteBeginning: () => {} },
    blockTokens: 64,
    decide: DECIDE,
    nowMs: () => clock.ms,
    later: () => {},
    ejected: () => {},
    ...options,
  });
  const place = (headers: Readonly<Record<string, string>> = {}) =>
    (
      scheduler.schedule({
        scan: -1,
        model: 'm',
        targetModel: 'm',
        cacheSalt: undefined,
        promptBytes: 400,
        maxOutputTokens: undefined,
        priority: 0,
        fairnessId: 'f',
        subset: undefined,
        headers: { get: (name: string) => headers[name] },
        path: '/',
      }) as Placement
    ).charge;
  const samples = () => {
    const taken: TrainingSample[] = [];
    reader.drain((sample) => taken.push({ ...sample }));
    return taken;
  };
  return { clock, place, samples };
}

const answer: AnswerMeasures = {
  outcome: 'completed',
  streamed: true,
  outputTokens: 11,
  promptTokens: 100,
  cachedTokens: 0,
};

/** Charge of an endpoint slot, with the ticket after its number. */
function chargeOver(more: Partial<SchedulerOptions> & { readonly decider: Decider }, slot: number): LedgerCharge {
  return new LedgerCharge(
    {
      directory: new EndpointDirectory(),
      settings: singleProfile.settings,
      nowMs: () => 900,
      later: () => {},
      ejected: () => {},
      ...more,
    },
    { slot, slotGeneration: 1, ticket: slot + 1, generation: 1 },
    64,
    0,
  );
}

describe('the charges of a request with several picks', () => {
  it('the charges of a request with several picks hear the endpoint that answers, and no other one', () => {
    const heard: unknown[] = [];
    const hearings = { heard: (...what: unknown[]) => heard.push(what) } as unknown as Hearings;
    const decider = { release: () => true } as unknown as Decider;
    const [answering, before] = [0, 1].map((slot) => chargeOver({ decider, hearings }, slot));
    new StagedCharge(answering!, [before!]).heard();
    const [ticket, slot, slotGeneration, nowMs] = [1, 0, 1, 900];
    expect(heard).toEqual([[ticket, slot, slotGeneration, nowMs]]);
  });
});

describe('the training sample of a charge', () => {
  it('the training sample of a charge says when other endpoints worked for the request before', () => {
    const samples: Measures[] = [];
    const decider = {
      noteSample: (_ticket: number, _generation: number, measures: Measures) => samples.push(measures),
      complete: () => {},
      release: () => true,
    } as unknown as Decider;
    const charge = (slot: number) => chargeOver({ decider }, slot);
    const staged = new StagedCharge(charge(0), [charge(1)]);
    staged.answered(answer);
    staged.release();
    const alone = charge(2);
    alone.answered(answer);
    alone.release();
    // The one that worked before releases its charge without a sample.
    expect(samples.map(({ staged }) => staged)).toEqual([true, false]);
  });

  it('the training sample of a charge measures a stream from the decision to its first output, and then to its end per token', () => {
    const { clock, place, samples } = scheduling();
    const charge = place();
    clock.ms = 1200;
    charge.prefillDone();
    clock.ms = 1700;
    charge.answered!(answer);
    charge.release();
    const measured = { firstOutputMs: 200, perTokenMs: 50, durationMs: 700, outputTokens: 11, promptTokens: 100 };
    expect(samples()).toMatchObject([{ outcome: 'completed', ...measured }]);
  });

  it.each([
    { ttft: '200', met: true },
    { ttft: '199', met: false },
    { ttft: '200', tpot: '50', met: true },
    { tpot: '49', met: false },
    { met: undefined },
  ])('the training sample of a charge says whether a stream met its targets: $ttft, $tpot', ({ ttft, tpot, met }) => {
    const { clock, place, samples } = scheduling();
    const charge = place({
      ...(ttft === undefined ? {} : { 'x-llm-d-slo-ttft-ms': ttft }),
      ...(tpot === undefined ? {} : { 'x-llm-d-slo-tpot-ms': tpot }),
    });
    clock.ms = 1200;
    charge.prefillDone();
    clock.ms = 1700;
    charge.answered!(answer);
    charge.release();
    expect(samples()).toMatchObject([{ targetsMet: met }]);
  });

  it('the training sample of a charge takes events for tokens when the engine reports no usage', () => {
    const { clock, place, samples } = scheduling();
    const charge = place();
    charge.prefillDone();
    charge.grow(5);
    clock.ms = 1400;
    charge.answered!({ ...answer, outputTokens: undefined });
    charge.release();
    expect(samples()).toMatchObject([{ outputTokens: 5, perTokenMs: 100 }]);
  });

  it('the training sample of a charge knows no first token of an answer in one piece', () => {
    const { clock, place, samples } = scheduling();
    const charge = place();
    clock.ms = 1500;
    charge.prefillDone();
    charge.answered!({ ...answer, streamed: false });
    charge.release();
    expect(samples()).toMatchObject([{ firstOutputMs: undefined, perTokenMs: undefined, durationMs: 500 }]);
  });

  it('the training sample of a charge says that the request was aborted when no answer ended', () => {
    const { place, samples } = scheduling();
    place().release();
    expect(samples()).toMatchObject([{ outcome: 'aborted', outputTokens: undefined }]);
  });

  it('the training sample of a charge is written once, however often the charge is released', () => {
    const { place, samples } = scheduling();
    const charge = place();
    charge.release();
    charge.release();
    expect(samples()).toHaveLength(1);
  });

  it('the training sample of a charge leaves the prefill of others alone when estimated output keeps the tokens charged', () => {
    const { place, samples } = scheduling({
      settings: singleProfileSettings({ estimateOutput: { ratio: 1, maxTokens: undefined, classes: false } }),
    });
    place().prefillDone();
    place().release();
    expect(samples()).toMatchObject([{ inflight: 1, prefillTokens: 0 }]);
  });
});
