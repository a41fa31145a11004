import { describe, expect, it } from 'vitest';
import type { DecisionRequest, DecisionStatus } from '../../dist/src/core/decision-data.js';
import type { Placement, ScheduleInput } from '../../dist/src/scheduling/decision.js';
import { EndpointDirectory } from '../../dist/src/scheduling/endpoint-directory.js';
import type { ProfilePick, ProfileRuns } from '../../dist/src/scheduling/profile-handler.js';
import { CoreScheduler, type SchedulerOptions } from '../../dist/src/scheduling/scheduler.js';
import { TokenRatios } from '../../dist/src/scheduling/token-ratios.js';
import { DECIDE } from '../serve/default-sections.ts';
import { singleProfile, singleProfileSettings } from './single-profile.ts';

const input: ScheduleInput = {
  scan: -1,
  model: 'm',
  targetModel: 'm',
  cacheSalt: undefined,
  promptBytes: 40,
  maxOutputTokens: undefined,
  priority: 0,
  fairnessId: 'default-flow',
  subset: undefined,
  headers: { get: () => undefined },
  path: '/v1/completions',
};

/** A scheduler over a core that decides nothing: it notes what it is asked and answers with `status`. */
function schedulerOver(
  status: DecisionStatus,
  requests: DecisionRequest[],
  options: Partial<SchedulerOptions> = {},
  filter?: number,
) {
  const decider = {
    decide(request: DecisionRequest) {
      requests.push(request);
      return { status, slots: [], filter };
    },
  };
  return new CoreScheduler({
    decider: decider as unknown as SchedulerOptions['decider'],
    directory: new EndpointDirectory(),
    ...singleProfile,
    prompts: { chain: () => ({ blocks: 5, tail: true }), noteBeginning: () => {} },
    blockTokens: 64,
    decide: DECIDE,
    nowMs: () => 0,
    later: () => {},
    ejected: () => {},
    ...options,
  });
}

/** What the core is asked for a request. */
function asked(given: Partial<ScheduleInput>, options: Partial<SchedulerOptions> = {}): DecisionRequest {
  const requests: DecisionRequest[] = [];
  schedulerOver('no-candidates', requests, options).schedule({ ...input, ...given });
  return requests[0]!;
}

describe('a request that cannot be placed', () => {
  it.each([
    [
      'no-candidates',
      'ServiceUnavailable',
      'failed to find endpoint candidates for serving the request',
      'rejected-no-endpoints',
    ],
    ['filtered', 'ResourceExhausted', 'no endpoints available for the given request', 'rejected-saturated'],
    ['busy', 'ServiceUnavailable', 'the picker is repairing its state: try again', undefined],
  ] as const)('a request that cannot be placed because of %s is answered with %s', (status, code, message, reason) => {
    expect(schedulerOver(status, []).schedule(input)).toMatchObject({ kind: 'rejected', code, message, reason });
  });
});

describe('a request that the filters leave no endpoint', () => {
  const filters = [
    [
      { name: 'role', judgesLoad: false },
      { name: 'full', judgesLoad: true },
      { name: 'gpu', judgesLoad: false },
    ],
  ];

  function rejection(filter: number | undefined) {
    const reported: string[] = [];
    const options = {
      settings: singleProfileSettings({ filters }),
      filteredOut: (name: string) => reported.push(name),
    };
    const outcome = schedulerOver('filtered', [], options, filter).schedule(input);
    return [outcome.kind === 'rejected' && [outcome.code, outcome.reason, outcome.message], reported];
  }

  it('a request without endpoints after the filters gets a 503 that names the filter when load has no part in it', () => {
    const text = 'no endpoints available for the given request: the filter "role" leaves none';
    expect(rejection(0)).toEqual([['ServiceUnavailable', 'rejected-no-endpoints', text], ['role']]);
  });

  it('a request without endpoints after the filters is told to come again when the filter judges load, or one before it does', () => {
    const again = ['ResourceExhausted', 'rejected-saturated', 'no endpoints available for the given request'];
    expect([rejection(1), rejection(2), rejection(undefined)]).toEqual([
      [again, []],
      [again, []],
      [again, []],
    ]);
  });
});

describe('the tokens of a request of a model with a learned ratio', () => {
  const ratios = new TokenRatios(64);
  for (let i = 0; i < 200; i++) ratios.note('m', 4_096, 512);
  const size = (given: Partial<ScheduleInput>) => {
    const { promptTokens, blockTokens } = asked(given, { ratios });
    return [promptTokens, blockTokens];
  };

  it("a text of a model with a learned ratio has the model's tokens, and so have its blocks", () => {
    expect(size({ promptBytes: 4_096 })).toEqual([512, 32]);
    expect(size({ promptBytes: 4_096, targetModel: 'other' })).toEqual([1_024, 64]);
  });

  it('token ids, and tokens that were counted, are as many as they are', () => {
    expect(size({ promptBytes: 4_096, tokenIds: true })).toEqual([1_024, 64]);
    expect(size({ promptBytes: 4_096, tokens: { ids: Uint32Array.of(1, 2, 3), features: [] } })).toEqual([3, 64]);
  });
});

describe('the tokens of a request', () => {
  it.each([
    [0, 0],
    [1, 1],
    [4, 1],
    [5, 2],
  ])('the tokens of a request are a quarter of its %i prompt bytes, rounded up to %i', (promptBytes, promptTokens) => {
    expect(asked({ promptBytes }).promptTokens).toBe(promptTokens);
  });

  it('the tokens of a request have no output when none is estimated', () => {
    expect(asked({ maxOutputTokens: 7 }).outputTokens).toBe(0);
  });

  it.each([
    ['the ratio of the prompt', 40, undefined, undefined, 15],
    ['half a token rounded up', 4, undefined, undefined, 2],
    ["at most the client's bound", 40, 7, undefined, 7],
    ['at most the configured bound', 40, 12, 9, 9],
  ])(
    'the tokens of a request have an estimated output of %s',
    (_what, promptBytes, maxOutputTokens, maxTokens, outputTokens) => {
      const estimateOutput = { ratio: 1.5, maxTokens, classes: false };
      expect(
        asked({ promptBytes, maxOutputTokens }, { settings: singleProfileSettings({ estimateOutput }) }).outputTokens,
      ).toBe(outputTokens);
    },
  );
});

describe('the estimated output of a request by its class', () => {
  function output(classes: boolean, request: Partial<ScheduleInput>, maxTokens?: number): number {
    const estimateOutput = { ratio: undefined, maxTokens, classes };
    return asked({ promptBytes: 4_000_000, ...request }, { settings: singleProfileSettings({ estimateOutput }) })
      .outputTokens;
  }

  it.each([
    ['long', 4_096],
    ['short', 100],
    ['unknown', 1_000],
  ] as const)('a %s answer counts %i tokens, whatever the prompt', (outputClass, tokens) => {
    expect(output(true, { outputClass })).toBe(tokens);
  });

  it('every answer counts as one of an unknown length without classes', () => {
    expect(output(false, { outputClass: 'long' })).toBe(1_000);
  });

  it("the client's bound and the configured one hold, and a bound of 0 is none", () => {
    expect(output(true, { outputClass: 'long', maxOutputTokens: 2_000 })).toBe(2_000);
    expect(output(true, { outputClass: 'long', maxOutputTokens: 0 })).toBe(4_096);
    expect(output(true, { outputClass: 'long', maxOutputTokens: 300 }, 200)).toBe(200);
  });
});

describe('the blocks of a request', () => {
  const prefix = (maxBlocks: number) => ({
    settings: singleProfileSettings({ prefix: { blockTokens: 64, capacityBlocks: 100, maxBlocks, autoTune: false } }),
  });

  it('the blocks of a request are none without a scan or without a prefix index', () => {
    expect(asked({ scan: 1 })).toMatchObject({ blocks: 0, tail: false });
    expect(asked({ scan: -1 }, prefix(10))).toMatchObject({ blocks: 0, tail: false });
  });

  it('the blocks of a request are those of the chain, up to the bound; what is cut off has no tail', () => {
    expect(asked({ scan: 1 }, prefix(10))).toMatchObject({ blocks: 5, tail: true });
    expect(asked({ scan: 1 }, prefix(5))).toMatchObject({ blocks: 5, tail: false });
    expect(asked({ scan: 1 }, prefix(3))).toMatchObject({ blocks: 3, tail: false });
  });
});

describe('the times that a request wants', () => {
  it('the times that a request wants go to the core from its headers, whether or not something predicts latency', () => {
    const headers = new Map([
      ['x-llm-d-slo-ttft-ms', '300'],
      ['x-slo-tpot-ms', '25'],
    ]);
    expect(asked({ headers })).toMatchObject({ wantedTtftMs: 300, wantedTpotMs: 25 });
    expect(asked({})).toMatchObject({ wantedTtftMs: 0, wantedTpotMs: 0 });
  });

  it('the times that a request wants are those of its objective as far as it says nothing itself', () => {
    const objectiveTimes = new Map([['interactive', { ttftMs: 500, tpotMs: 0 }]]);
    const ofHeaders = (...headers: [string, string][]) =>
      asked({ headers: new Map(headers) }, { settings: singleProfileSettings({ objectiveTimes }) });
    const objective: [string, string] = ['x-llm-d-inference-objective', 'interactive'];
    expect(ofHeaders(objective)).toMatchObject({ wantedTtftMs: 500, wantedTpotMs: 0 });
    expect(ofHeaders(['x-gateway-inference-objective', 'interactive'])).toMatchObject({ wantedTtftMs: 500 });
    expect(ofHeaders(objective, ['x-slo-ttft-ms', '80'])).toMatchObject({ wantedTtftMs: 80, wantedTpotMs: 0 });
    expect(ofHeaders(objective, ['x-slo-tpot-ms', '30'])).toMatchObject({ wantedTtftMs: 500, wantedTpotMs: 30 });
    expect(ofHeaders(['x-llm-d-inference-objective', 'batch'])).toMatchObject({ wantedTtftMs: 0, wantedTpotMs: 0 });
  });
});

describe('a request whose prompt one endpoint computes for another', () => {
  /** Endpoint 0 computes the prompt; endpoint 1 answers, with `ticket`. Predicted are 100 ms, then 200 ms. */
  function placed(ticket: number) {
    const elsewhere: [ticket: number, generation: number][] = [];
    let decisions = 0;
    const decider = {
      decide: () => {
        const slot = decisions++;
        const held = { ticket: slot === 1 ? ticket : 5, ticketGeneration: 7 + slot };
        const predicted = { predictedTtftMs: 100 * (slot + 1), predictedTpotMs: Number.NaN };
        return { status: 'decided', slots: [slot], shadow: { state: 'unasked' }, ...held, ...predicted };
      },
      storePick: () => {},
      prefillElsewhere: (...given: [number, number]) => elsewhere.push(given),
    };
    const directory = new EndpointDirectory();
    const endpointAt = (slot: number) => ({ id: `${slot}`, name: `${slot}`, address: `10.0.0.${slot}`, port: 80 });
    directory.apply([0, 1].map((slot) => ({ slot, generation: 1, endpoint: endpointAt(slot) })) as never, []);
    const handle = (runs: ProfileRuns) => {
      runs.run('prefill', 'prefill');
      return { kind: 'handled' as const, primary: runs.run('decode', 'answer') as ProfilePick };
    };
    const scheduler = schedulerOver('decided', [], {
      decider: decider as unknown as SchedulerOptions['decider'],
      directory,
      settings: singleProfileSettings({ profiles: ['prefill', 'decode'] }),
      handler: { handle },
      predicts: true,
    });
    return { placement: scheduler.schedule(input) as Placement, elsewhere };
  }

  it('a request whose prompt one endpoint computes for another has the predicted times of the one that answers', () => {
    expect(placed(6).placement.prediction).toMatchObject({ ttftMs: 200, tpotMs: undefined });
  });

  it('a request whose prompt one endpoint computes for another is not waited for at the one that answers', () => {
    expect(placed(6).elsewhere).toEqual([[6, 8]]);
  });

  it('a request whose prompt one endpoint computes for another goes on uncharged when the ledger is full', () => {
    const { placement, elsewhere } = placed(0);
    expect([placement.kind, elsewhere]).toEqual(['placed', []]);
  });
});
