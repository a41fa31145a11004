import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SampleReader } from '../../dist/src/core/index.js';
import type { Placement } from '../../dist/src/scheduling/decision.js';
import { load, refusal } from '../config/configuration-text.ts';
import { ProfilePool, role } from './profile-pool.ts';

const PREFILL = 'x-prefiller-host-port';
const ENCODE = 'x-encoder-hosts-ports';

interface Shape {
  /** Parameters of the handler, as YAML. */
  readonly handler?: string;
  /** More plugins, as YAML. */
  readonly plugins?: readonly string[];
  /** Members of the profiles, as YAML, by the profile's name. */
  readonly profiles?: Readonly<Record<string, string>>;
}

const PROFILES = {
  decode: '{pluginRef: decode-filter}',
  prefill: '{pluginRef: prefill-filter}',
  encode: '{pluginRef: encode-filter}',
};

function text({
  handler = '{deciders: {prefill: always-disagg-pd-decider}}',
  plugins = [],
  profiles = PROFILES,
}: Shape) {
  const named = Object.entries(profiles).map(([name, members]) => `- {name: ${name}, plugins: [${members}]}\n`);
  return (
    `plugins:\n- {type: disagg-profile-handler, parameters: ${handler}}\n` +
    ['always-disagg-pd-decider', 'decode-filter', 'prefill-filter', 'encode-filter']
      .map((type) => `- {type: ${type}}\n`)
      .join('') +
    plugins.map((plugin) => `- ${plugin}\n`).join('') +
    `schedulingProfiles:\n${named.join('')}`
  );
}

const DECODE = role('decode');
const POOL = [DECODE, role('prefill'), role('encode')];

function pool(shape: Shape = {}, labels: readonly Readonly<Record<string, string>>[] = POOL): ProfilePool {
  return new ProfilePool(load(text(shape)), labels);
}

const prefixDecider = (parameters: string): Shape => ({
  handler: '{deciders: {prefill: prefix-based-pd-decider}}',
  plugins: [`{type: prefix-based-pd-decider, parameters: ${parameters}}`],
});

describe('the fallback of disagg-profile-handler', () => {
  const handler =
    '{deciders: {prefill: always-disagg-pd-decider}, profiles: {fallback: whole}, whenPrefillFails: reject}';
  const profiles = { ...PROFILES, whole: '{pluginRef: whole}' };
  const plugins = [
    '{name: whole, type: label-selector-filter, parameters: {matchLabels: {whole: yes}}}'.replace('yes', '"yes"'),
  ];
  const whole = { ...role('prefill'), whole: 'yes' };
  const shape: Shape = { handler, profiles, plugins };
  /** A pool that knows which filters go by labels alone, as a picker does. */
  const filtering = (labels: readonly Readonly<Record<string, string>>[]) => {
    const loaded = load(text(shape));
    return new ProfilePool(
      loaded,
      labels,
      [],
      undefined,
      loaded.scheduling.profiles.map(({ filters }) => filters),
    );
  };

  it('the fallback of disagg-profile-handler takes a request for which no endpoint can decode', () => {
    const each = filtering([role('prefill'), whole]);
    const { endpoints, headers } = each.place();
    expect(endpoints[0]!.endpoint.name).toBe('pod-1');
    expect([...headers]).toEqual([
      [PREFILL, undefined],
      [ENCODE, undefined],
    ]);
    expect(each.staged).toEqual(['aggregated-fallback m']);
  });

  it('the fallback of disagg-profile-handler releases what the stages before it held', () => {
    const each = filtering([DECODE, { ...role('encode'), whole: 'yes' }]);
    expect(each.place().endpoints[0]!.endpoint.name).toBe('pod-1');
    expect(each.load(2).map(([requests]) => requests)).toEqual([0, 1]);
  });

  it('the fallback of disagg-profile-handler is left alone while the stages have endpoints', () => {
    const each = filtering([DECODE, role('prefill'), whole]);
    expect(each.place().endpoints[0]!.endpoint.name).toBe('pod-0');
    expect(each.staged).toEqual(['prefill-decode m']);
  });

  it('the fallback of disagg-profile-handler without an endpoint refuses the request', () => {
    expect(filtering([role('prefill')]).schedule()).toMatchObject({
      kind: 'rejected',
      reason: 'rejected-no-endpoints',
    });
  });

  it('the fallback of disagg-profile-handler is refused with prefill first', () => {
    const text =
      'plugins: [{type: disagg-profile-handler, parameters: {stageOrder: prefill-first, ' +
      'profiles: {fallback: whole}}}]\n';
    expect(refusal(text)).toContain(
      'profiles.fallback: disagg-profile-handler: is not supported in prefill-first stage order',
    );
  });
});

describe('disagg-profile-handler with decode first', () => {
  it('disagg-profile-handler with decode first sends the request to a decode endpoint, with the prefill endpoint in a header', () => {
    const placement = pool().place();
    expect(placement.endpoints.map(({ address }) => address)).toEqual(['10.0.0.1:8000']);
    expect([...placement.headers]).toEqual([
      [PREFILL, '10.0.0.2:8000'],
      [ENCODE, undefined],
    ]);
    expect([...placement.picks.keys()]).toEqual(['decode', 'prefill']);
  });

  it('disagg-profile-handler with decode first names all encode endpoints that the picker chose, with commas', () => {
    const shape: Shape = {
      handler: '{deciders: {encode: always-disagg-pd-decider}}',
      plugins: ['{type: max-score-picker, parameters: {maxNumOfEndpoints: 2}}'],
    };
    const { headers } = pool(shape, [DECODE, role('encode'), role('encode')]).place();
    expect(headers.get(ENCODE)?.split(',').sort()).toEqual(['10.0.0.2:8000', '10.0.0.3:8000']);
    expect(headers.get(PREFILL)).toBeUndefined();
  });

  it.each([
    ['prefill', [DECODE, role('encode')], 'decode-only m'],
    ['encode', [DECODE, role('prefill')], 'prefill-decode m'],
  ])(
    'disagg-profile-handler with decode first goes on without the stage when there is no %s endpoint',
    (_stage, labels, staged) => {
      const handler = '{deciders: {prefill: always-disagg-pd-decider}}';
      const each = pool({ handler }, labels);
      expect(each.place().endpoints[0]!.endpoint.name).toBe('pod-0');
      expect(each.staged).toEqual([staged]);
    },
  );

  it('disagg-profile-handler with decode first turns the request away when no prefill endpoint can be picked and one must be', () => {
    const handler = '{deciders: {prefill: always-disagg-pd-decider}, whenPrefillFails: reject}';
    const each = pool({ handler }, [DECODE]);
    expect(each.schedule()).toMatchObject({
      kind: 'rejected',
      code: 'ResourceExhausted',
      reason: 'rejected-saturated',
    });
    expect(each.load(1)).toEqual([[0, 0]]);
  });

  it('disagg-profile-handler with decode first turns the request away when no decode endpoint can be picked', () => {
    expect(pool({}, [role('prefill')]).schedule()).toMatchObject({
      code: 'ResourceExhausted',
      message: 'no endpoints available for the given request',
      reason: 'rejected-saturated',
    });
  });

  it('disagg-profile-handler with decode first answers 503 without any endpoint', () => {
    expect(pool({}, []).schedule()).toMatchObject({ code: 'ServiceUnavailable', reason: 'rejected-no-endpoints' });
  });

  it('disagg-profile-handler with decode first turns all requests away without a decode profile, and says so when it is loaded', () => {
    const shape: Shape = { profiles: { other: PROFILES.decode, prefill: PROFILES.prefill } };
    expect(load(text(shape)).warnings.join()).toContain('there is no profile "decode": every request is turned away');
    expect(pool(shape).schedule()).toMatchObject({
      code: 'ResourceExhausted',
      message: 'failed to find target endpoint: there is no profile "decode"',
    });
  });

  it('disagg-profile-handler with decode first may use one endpoint for both stages', () => {
    const each = pool({}, [role('both')]);
    const placement = each.place();
    expect(placement.headers.get(PREFILL)).toBe('10.0.0.1:8000');
    expect(each.load(1)).toEqual([[2, 4]]);
    placement.charge.release();
    expect(each.load(1)).toEqual([[0, 0]]);
  });

  it('disagg-profile-handler with decode first matches once: what decode will hold does not draw the prefill there', () => {
    const scored = '{pluginRef: prefix-cache-scorer}';
    const shape: Shape = { plugins: ['{type: prefix-cache-scorer}'], profiles: { decode: scored, prefill: scored } };
    const { decode, prefill } = pool(shape, [role('both'), role('both')]).picks({ prompt: 'x'.repeat(2000) }) as {
      decode: string;
      prefill: string;
    };
    expect(prefill).not.toBe(decode);
  });

  it('disagg-profile-handler with decode first expects the prompt on decode and prefill endpoints, not on encode ones', () => {
    const shape: Shape = {
      handler: '{deciders: {prefill: always-disagg-pd-decider, encode: always-disagg-pd-decider}}',
    };
    const each = pool(shape);
    each.picks({ prompt: 'x'.repeat(2000) });
    expect([0, 1, 2].map((slot) => each.table.read(slot).prefixBlocks > 0)).toEqual([true, true, false]);
  });

  it('disagg-profile-handler with decode first shows the scores of the decode profile', () => {
    const scored = '{pluginRef: queue-scorer, weight: 3}';
    const shape: Shape = {
      plugins: ['{type: queue-scorer}'],
      profiles: { decode: `${PROFILES.decode}, ${scored}`, prefill: PROFILES.prefill },
    };
    expect([...pool(shape).place().scores!]).toEqual([['10.0.0.1:8000', 3]]);
  });
});

describe('disagg-profile-handler with prefill first', () => {
  const shape: Shape = { handler: '{stageOrder: prefill-first}' };

  it('disagg-profile-handler with prefill first uses a prefill endpoint for every request', () => {
    const each = pool(shape);
    expect(Object.keys(each.picks())).toEqual(['prefill', 'decode']);
    expect(each.staged).toEqual(['prefill-decode m']);
  });

  it('disagg-profile-handler with prefill first goes on without one', () => {
    expect(pool(shape, [DECODE]).picks()).toEqual({ decode: 'pod-0' });
  });

  it('disagg-profile-handler with prefill first leaves nothing behind when no decode endpoint can be picked', () => {
    const each = pool(shape, [role('prefill')]);
    expect(each.schedule({ prompt: 'x'.repeat(2000) })).toMatchObject({ code: 'ResourceExhausted' });
    expect(each.load(1)).toEqual([[0, 0]]);
    expect(each.table.read(0).prefixBlocks).toBe(0);
  });
});

describe('the parameters of disagg-profile-handler', () => {
  it.each(['', 'decode', 'Decode_First', 'DECODEFIRST'])(
    'the parameters of disagg-profile-handler take stageOrder "%s" for decode-first',
    (order) => {
      const handler = `{stageOrder: "${order}", deciders: {prefill: always-disagg-pd-decider}}`;
      expect(Object.keys(pool({ handler }).picks())).toEqual(['decode', 'prefill']);
    },
  );

  it.each(['prefill', 'Prefill_First'])(
    'the parameters of disagg-profile-handler take stageOrder "%s" for prefill-first',
    (order) => {
      expect(Object.keys(pool({ handler: `{stageOrder: "${order}"}` }).picks())).toEqual(['prefill', 'decode']);
    },
  );

  it('the parameters of disagg-profile-handler name the profiles', () => {
    const handler = '{profiles: {decode: d, prefill: p}, deciders: {prefill: always-disagg-pd-decider}}';
    expect(pool({ handler, profiles: { p: PROFILES.prefill, d: PROFILES.decode } }).picks()).toEqual({
      d: 'pod-0',
      p: 'pod-1',
    });
  });

  it.each([
    ['prefillDeciderPluginName', '{decodeProfile: decode, prefillDeciderPluginName: always-disagg-pd-decider}'],
    ['deciderPluginName', '{deciderPluginName: always-disagg-pd-decider}'],
  ])(
    'the parameters of disagg-profile-handler may have the deprecated flat form with %s, which warns',
    (field, handler) => {
      expect(Object.keys(pool({ handler }).picks())).toEqual(['decode', 'prefill']);
      const warnings = load(text({ handler })).warnings.join('\n');
      expect(warnings).toContain(`${field} is deprecated: use deciders.prefill`);
    },
  );

  it.each([
    ['{stageOrder: sideways}', 'invalid stage order, must be "decode-first" or "prefill-first"'],
    [
      '{stageOrder: prefill-first, deciders: {prefill: always-disagg-pd-decider}}',
      'prefill decider is not supported in prefill-first stage order',
    ],
    [
      '{deciderPluginName: a, deciders: {prefill: always-disagg-pd-decider}}',
      'is deprecated and cannot be mixed with profiles and deciders: use deciders.prefill',
    ],
    ['{deciders: {prefill: nope}}', 'parameters.deciders.prefill: plugin "nope" is not defined'],
    ['{deciders: {encode: decode-filter}}', 'plugin "decode-filter" is of kind filter, expected decider'],
    ['{bogus: 1}', 'unknown field "bogus"'],
  ])('%s are refused: %s', (handler, message) => {
    expect(refusal(text({ handler }))).toContain(message);
  });

  it('the parameters of disagg-profile-handler may name a decider that stands behind the handler', () => {
    const { scheduling } = load(text({}));
    expect(scheduling.handler.deciders.map(({ name }) => name)).toContain('always-disagg-pd-decider');
  });

  it('the parameters of disagg-profile-handler without a decider split nothing', () => {
    expect(pool({ handler: '{}' }).picks()).toEqual({ decode: 'pod-0' });
  });
});

describe('prefix-based-pd-decider', () => {
  const LONG = 'y'.repeat(256);

  it.each([
    ['enough of the prompt is not cached', '{nonCachedTokens: 64}', LONG, true],
    ['too little of it is', '{nonCachedTokens: 65}', LONG, false],
    ['nonCachedTokens is 0', '{}', LONG, false],
    ['the prompt is shorter than promptTokens', '{nonCachedTokens: 16, promptTokens: 65}', LONG, false],
    ['it is as long', '{nonCachedTokens: 16, promptTokens: 64}', LONG, true],
  ])('prefix-based-pd-decider when %s with %s', (_what, parameters, prompt, prefills) => {
    expect('prefill' in pool(prefixDecider(parameters)).picks({ prompt })).toBe(prefills);
  });

  it('prefix-based-pd-decider counts what the decode endpoint holds', () => {
    const each = pool(prefixDecider('{nonCachedTokens: 16}'));
    expect(Object.keys(each.picks({ prompt: LONG }))).toEqual(['decode', 'prefill']);
    expect(Object.keys(each.picks({ prompt: LONG }))).toEqual(['decode']);
    expect(Object.keys(each.picks({ prompt: `${LONG}${'z'.repeat(60)}` }))).toEqual(['decode']);
    expect(Object.keys(each.picks({ prompt: `${LONG}${'q'.repeat(64)}` }))).toEqual(['decode', 'prefill']);
  });

  it.each(['nonCachedTokens', 'promptTokens'])('prefix-based-pd-decider refuses a negative %s', (field) => {
    expect(refusal(text(prefixDecider(`{${field}: -1}`)))).toContain(
      `${field} parameter of prefix disaggregation decider cannot be negative`,
    );
  });
});

describe('always-disagg-multimodal-decider', () => {
  it('always-disagg-multimodal-decider has the media of a request encoded elsewhere', () => {
    const each = pool({
      handler: '{deciders: {encode: always-disagg-multimodal-decider}}',
      plugins: ['{type: always-disagg-multimodal-decider}'],
    });
    expect(each.picks({ hasMedia: true })).toEqual({ decode: 'pod-0', encode: 'pod-2' });
    expect(each.picks({ hasMedia: false })).toEqual({ decode: 'pod-0' });
    expect(each.staged).toEqual(['encode-decode m', 'decode-only m']);
  });
});

describe('a request that asks for the cache only', () => {
  const prompt = 'k'.repeat(2000);

  it.each(['if-available', 'respond-async, If-Available', 'if-available; foo=1'])(
    'a request that asks for the cache only by "prefer: %s" is refused with 412 when the decode endpoint holds ' +
      'nothing of it, and leaves nothing behind',
    (prefer) => {
      const each = pool();
      expect(each.schedule({ prompt, headers: { prefer } })).toMatchObject({
        code: 'PreconditionFailed',
        message: 'no decode worker has the requested KV cache',
        reason: undefined,
      });
      expect(each.load(2)).toEqual([
        [0, 0],
        [0, 0],
      ]);
      expect(each.schedule({ prompt, headers: { prefer } })).toMatchObject({ code: 'PreconditionFailed' });
    },
  );

  it('a request that asks for the cache only is served when the decode endpoint holds some of it', () => {
    const each = pool();
    each.picks({ prompt });
    expect(each.picks({ prompt, headers: { prefer: 'if-available' } })).toMatchObject({ decode: 'pod-0' });
  });

  it('a request that asks for the cache only is not meant by other preferences', () => {
    expect(pool().picks({ prompt, headers: { prefer: 'respond-async' } })).toMatchObject({ decode: 'pod-0' });
  });
});

describe('the charges of a request with stages', () => {
  const shape: Shape = {
    handler: '{deciders: {prefill: always-disagg-pd-decider, encode: always-disagg-pd-decider}}',
  };
  const prompt = 'p'.repeat(40);
  const held = [
    [1, 10],
    [1, 10],
    [1, 10],
  ];

  it('the charges of a request with stages are on every endpoint until the first token, then on the answering one to the end', () => {
    const each = pool(shape);
    const { charge } = each.place({ prompt });
    expect(each.load(3)).toEqual(held);
    charge.prefillDone();
    expect(each.load(3)).toEqual([
      [1, 0],
      [0, 0],
      [0, 0],
    ]);
    charge.release();
    expect(each.load(3)).toEqual([
      [0, 0],
      [0, 0],
      [0, 0],
    ]);
  });

  it('the charges of a request with stages leave one label, that of the endpoint that answered', () => {
    const each = pool(shape);
    const reader = new SampleReader(each.control);
    const slots: number[] = [];
    const { charge } = each.place({ prompt });
    charge.prefillDone();
    charge.release();
    each.schedule({ prompt: 'nobody has it', headers: { prefer: 'if-available' } });
    reader.drain(({ slot }) => slots.push(slot));
    expect(slots).toEqual([0]);
  });

  it('the charges of a request with stages count estimated output only where it is made', () => {
    const each = pool({
      ...shape,
      plugins: ['{type: inflight-load-producer, parameters: {addEstimatedOutputTokens: true, outputRatio: 2}}'],
    });
    each.place({ prompt });
    expect(each.load(3)).toEqual([
      [1, 30],
      [1, 10],
      [1, 10],
    ]);
  });

  it('the charges of a request with stages are all released when their shard dies', () => {
    const each = pool(shape);
    for (let i = 0; i < 5; i++) each.place({ prompt });
    expect(each.control.call.reclaimThread(1)).toBe(15);
    expect(
      each
        .load(3)
        .flat()
        .every((value) => value === 0),
    ).toBe(true);
    expect(each.control.call.ledgerCheck()).toBe(0);
  });

  it('the charges of a request with stages are routed uncharged, stage by stage, when the ledger is full', () => {
    const each = pool(shape);
    const placements = Array.from({ length: 100 }, () => each.place({ prompt }));
    expect(each.control.call.ledgerFull()).toBe(300 - 256);
    for (const { charge } of placements) charge.release();
    expect(each.control.call.ledgerUsed()).toBe(0);
    expect(each.control.call.ledgerCheck()).toBe(0);
  });

  it('the charges of a request with stages add up whatever happens to the requests, in any order and as often as it may', () => {
    const step = fc.record({
      request: fc.nat(7),
      what: fc.constantFrom('ask', 'first token', 'end', 'grow', 'outcome'),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const each = pool(shape);
        const open = new Map<number, { placement: Placement; prefilled: boolean }>();
        const ended: Placement[] = [];
        for (const { request, what } of steps) {
          const one = open.get(request);
          if (what === 'ask' && one === undefined)
            open.set(request, { placement: each.place({ prompt }), prefilled: false });
          if (what === 'first token' && one !== undefined) {
            one.placement.charge.prefillDone();
            one.prefilled = true;
          }
          if (what === 'grow') one?.placement.charge.grow(200);
          if (what === 'outcome') one?.placement.charge.outcome('answered');
          if (what === 'end' && one !== undefined) {
            one.placement.charge.release();
            ended.push(one.placement);
            open.delete(request);
          }
          // What is over stays over, whatever comes late.
          for (const { charge } of ended) {
            charge.prefillDone();
            charge.release();
          }
          const requests = [...open.values()];
          const waiting = requests.filter(({ prefilled }) => !prefilled).length;
          expect(each.load(3).map(([inflight]) => inflight)).toEqual([requests.length, waiting, waiting]);
          expect(each.control.call.ledgerCheck()).toBe(0);
        }
        for (const { placement } of open.values()) placement.charge.release();
        expect(each.control.call.ledgerUsed()).toBe(0);
        expect(each.control.call.activeCheck()).toBe(0);
      }),
      { numRuns: 25 },
    );
  });
});
