import { describe, expect, test } from 'vitest';
import { builtinPlugins } from '../../../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../../../dist/src/config/load.js';
import type { MakeAdmissionRule } from '../../../../dist/tools/simulator/fleet/admission-rule.js';
import { simulate } from '../../../../dist/tools/simulator/fleet/simulation.js';
import { thunderAgent } from '../../../../dist/tools/simulator/fleet/thunder-agent.js';
import { fleetOf } from '../../../../dist/tools/simulator/suite/fleet-of.js';
import { baselines } from '../../../../dist/tools/simulator/suite/policies.js';
import { summarise } from '../../../../dist/tools/simulator/suite/run-summary.js';
import { fleetSchema, suiteSchema } from '../../../../dist/tools/simulator/suite/schema.js';
import { workloadOf } from '../../../../dist/tools/simulator/suite/workload-of.js';

const DEFAULT = baselines.find(({ name }) => name === 'default')!.configuration;
const HELD = { featureGates: ['flowControl'], flowControl: { defaultRequestTTL: '900s', sessions: { mode: 'on' } } };

interface Played {
  readonly changes?: object;
  readonly fleet?: object;
  readonly admission?: MakeAdmissionRule;
  readonly files?: Readonly<Record<string, string>>;
}

function play(workloads: readonly object[], { changes = {}, fleet = {}, admission, files = {} }: Played = {}) {
  const warmup = { seconds: 10, requests: 1_000_000 };
  const suite = suiteSchema.parse({ workloads, policies: [{ name: 'default' }], warmup });
  const traffic = workloadOf(suite, suite.workloads.at(-1)!.name, 1, (path) => files[path]!);
  const text = JSON.stringify({ ...JSON.parse(DEFAULT), ...changes });
  const configuration = loadConfiguration({ text }, { allowExperimental: true, registry: builtinPlugins });
  const simulated = fleetOf(fleetSchema.parse({ endpoints: 2, ...fleet }), suite.blockTokens);
  const outcome = simulate(traffic, { ...configuration, admission }, simulated, 1);
  return { outcome, traffic, summary: summarise(outcome, suite, traffic.parts.length) };
}

const AGENTS = { name: 'agents', kind: 'agentic', concurrency: 20, seconds: 120, thinkSeconds: 5, turns: 5 };
/** Caches that the histories of a few agents fill. */
const SMALL = { kvTokens: 120_000 };
const CROWDED = { ...AGENTS, concurrency: 14 };

describe('agents under rules of other routers', () => {
  test('ThunderAgent’s rule holds turns of agents whose sessions do not fit, and chat without a name passes', () => {
    const chat = { name: 'chat', kind: 'chat', concurrency: 5, seconds: 120, anonymous: true };
    const both = { name: 'both', kind: 'together', parts: ['agents', 'chat'], seconds: 120 };
    const { outcome } = play([CROWDED, chat, both], { admission: thunderAgent(true), fleet: SMALL });
    const held = (part: number) => outcome.requests.filter((each) => each.part === part && each.heldMs > 0).length;
    expect(held(0)).toBeGreaterThan(0);
    expect(held(1)).toBe(0);
  });

  test('the last turn of a session is told to a rule, and a client goes on with its next session', () => {
    const ends: boolean[] = [];
    const asked: number[] = [];
    const passing: MakeAdmissionRule = () => ({
      ask: ({ session }, placed) => {
        asked.push(session);
        placed([session % 2]);
      },
      leave: () => undefined,
      sent: () => undefined,
      grown: () => undefined,
      ended: (_session, _tokens, last) => void ends.push(last),
      sampled: () => undefined,
      endpointsChanged: () => undefined,
    });
    const { outcome } = play([{ ...AGENTS, concurrency: 4 }], { admission: passing });
    expect(outcome.requests.every(({ endpoint, session }) => endpoint === session % 2)).toBe(true);
    const finished = ends.filter((last) => last).length;
    expect(new Set(asked).size).toBeGreaterThanOrEqual(finished);
    expect(new Set(asked).size).toBeLessThanOrEqual(finished + 4);
  });
});

describe('figures of agents', () => {
  test('each part of a workload has figures of its own', () => {
    const chat = { name: 'chat', kind: 'chat', concurrency: 5, seconds: 120 };
    const both = { name: 'both', kind: 'together', parts: ['agents', 'chat'], seconds: 120 };
    const { summary } = play([{ ...AGENTS, concurrency: 4 }, chat, both]);
    const [agents, talk] = summary.byPart;
    expect(agents!.hitRatio).toBeGreaterThan(0.5);
    expect(talk!.ttft.p50).toBeLessThan(agents!.e2e.p50);
  });

  test('every later turn of an agent is recognised by its prompt', () => {
    const { summary } = play([{ ...AGENTS, concurrency: 4 }], { changes: HELD });
    expect(summary.recognised).toBe(1);
    expect(play([{ ...AGENTS, concurrency: 4 }]).summary.recognised).toBeNull();
  });
});

describe('traffic of agents', () => {
  test('pauses follow the quantiles that are given', () => {
    const pauses = [
      [0, 1],
      [0.5, 11],
      [0.75, 41],
      [0.9, 197],
      [1, 300],
    ];
    const long = { name: 'long', kind: 'agentic', rate: 3, seconds: 60, turns: 30, pauses };
    const suite = suiteSchema.parse({ workloads: [long], policies: [{ name: 'default' }] });
    const traffic = workloadOf(suite, 'long', 1, () => '');
    const drawn = traffic.sessions
      .flatMap(({ turns }) => turns.slice(1).map(({ thinkMs }) => thinkMs / 1e3))
      .sort((a, b) => a - b);
    const at = (share: number) => drawn[Math.floor(share * drawn.length)]!;
    expect(drawn.length).toBeGreaterThan(2_000);
    expect(at(0.5) / 11).toBeCloseTo(1, 0);
    expect(at(0.75)).toBeGreaterThan(35);
    expect(at(0.75)).toBeLessThan(48);
    expect(at(0.9)).toBeGreaterThan(160);
    expect(at(0.9)).toBeLessThan(215);
    expect(drawn.at(-1)).toBeLessThanOrEqual(300);
  });

  test('quantiles that fall are refused with the field', () => {
    const suite = {
      workloads: [
        {
          name: 'w',
          kind: 'agentic',
          pauses: [
            [0, 5],
            [1, 2],
          ],
        },
      ],
      policies: [{ name: 'default' }],
    };
    expect(() => suiteSchema.parse(suite)).toThrow('the seconds must not fall');
  });

  test('a trace of agents is played by a fixed number of clients until the time is over', () => {
    const line = (session: string, turn: number) => ({
      timestamp_ms: 100 * turn,
      prompt_tokens: 640 * (turn + 1),
      output_tokens: 20,
      block_ids: Array.from({ length: 10 * (turn + 1) }, (_, i) => `${session}${i}`),
      session,
      think_ms: 2_000,
    });
    const lines = ['a', 'b', 'c'].flatMap((session) => [0, 1, 2].map((turn) => JSON.stringify(line(session, turn))));
    const trace = { name: 'trace', kind: 'jsonl', path: 'agents.jsonl', concurrency: 2, seconds: 100 };
    const { outcome } = play([trace], { files: { 'agents.jsonl': lines.join('\n') } });
    expect(outcome.endMs).toBe(100_000);
    expect(new Set(outcome.requests.map(({ client }) => client))).toEqual(new Set([0, 1]));
    expect(new Set(outcome.requests.map(({ session }) => session)).size).toBeGreaterThan(6);
  });
});

const HOST = { place: 'host', tokens: 2_000_000, bandwidthGBs: 50 };

describe('agents on engines with tiers', () => {
  test('what no longer fits on the GPU is found in the host memory, and turns take less time', () => {
    const fleet = { ...SMALL, kvEvents: {} };
    const without = play([CROWDED], { fleet }).summary;
    const tiered = play([CROWDED], { fleet: { ...fleet, tiers: [HOST] } }).summary;
    expect(without.loadRatio).toBe(0);
    expect(tiered.loadRatio).toBeGreaterThan(0.05);
    expect(tiered.hitRatio).toBeGreaterThan(without.hitRatio + 0.1);
    expect(tiered.e2e.mean).toBeLessThan(without.e2e.mean);
  });

  test('the gate holds fewer turns where tiers keep what the GPU forgets', () => {
    const holds = (tiers: object) => {
      const fleet = { ...SMALL, kvEvents: {}, ...tiers };
      return play([CROWDED], { changes: HELD, fleet }).summary.heldShare;
    };
    const without = holds({});
    expect(without).toBeGreaterThan(0);
    expect(holds({ tiers: [HOST] })).toBeLessThan(0.9 * without);
  });

  test('a place that stands there twice is refused', () => {
    const twice = fleetSchema.parse({ tiers: [HOST, HOST] });
    expect(() => fleetOf(twice, 64)).toThrow('"host" stands there twice');
  });
});

describe('agents behind several pickers', () => {
  const pickers = (sharing: string) => ({ pickers: { replicas: 4, sharing, sharingDelayMs: 10 } });

  test('pickers that share recognise the turns of sessions that began at another one', () => {
    const agents = { ...AGENTS, concurrency: 6, seconds: 60 };
    const shared = play([agents], { changes: HELD, fleet: pickers('all') }).summary;
    const apart = play([agents], { changes: HELD, fleet: pickers('none') }).summary;
    expect(shared.recognised).toBeGreaterThan(0.99);
    expect(apart.recognised).toBeLessThan(0.9);
  });

  test('pickers that share hold turns beside each other and keep the caches nearly as one picker does', () => {
    const crowd = { name: 'crowd', kind: 'agentic', concurrency: 21, seconds: 200 };
    const hits = (fleet: object) => {
      const held = { changes: HELD, fleet: { hardware: 'qwen3-32b-h100-tp2', endpoints: 2, ...fleet } };
      return play([crowd], held).summary.hitRatio;
    };
    expect(hits(pickers('all'))).toBeGreaterThan(0.85 * hits({}));
  });
});
