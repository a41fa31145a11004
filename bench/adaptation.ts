// What learning costs: one sample (estimators and the guard's bookkeeping), and a tick of the whole adapter as the
// control thread does it. Deciding by learned costs is measured in decide.ts (decide/chat-4k/…/marginal-cost against
// decide/chat-4k/…).
import { Adapter } from '../dist/src/adaptation/adapter.js';
import { CostModel } from '../dist/src/adaptation/cost-model.js';
import { defaultAdaptation } from '../dist/src/config/adaptation.js';
import {
  attachCore,
  CostTable,
  createPoolMemory,
  defaultPoolSizes,
  EndpointTable,
  type TrainingSample,
} from '../dist/src/core/index.js';

const settings = { ...defaultAdaptation(), mode: 'auto' as const };
const TICK_MS = 250;
const SIZES = [8, 100];

/** Labels of different requests on `endpoints` endpoints, their times about what the prior says. */
function makeSamples(endpoints: number): TrainingSample[] {
  return Array.from({ length: 4096 }, (_, i) => {
    const promptTokens = 200 + ((i * 7919) % 8000);
    const uncachedTokens = (i * 31) % promptTokens;
    const outputTokens = 20 + ((i * 13) % 400);
    const inflight = i % 20;
    const perTokenMs = 13 + inflight / 4 + (i % 5);
    return {
      timeMs: 0,
      slot: i % endpoints,
      slotGeneration: 1,
      priority: 0,
      profile: 0,
      tag: 1,
      modelLow: 1,
      modelHigh: 1,
      promptTokens,
      uncachedTokens,
      bestCachedTokens: promptTokens - uncachedTokens,
      inflight,
      prefillTokens: (i * 17) % 9000,
      promptTokensInFlight: inflight * 3000,
      waiting: i % 3,
      running: inflight,
      kvUsage: 0.4,
      prefillRate: 2,
      activeBlocks: 100,
      wouldPick: (i * 3) % endpoints,
      outcome: 'completed',
      firstOutputMs: 30 + uncachedTokens / 18 + (i % 11),
      perTokenMs,
      durationMs: 30 + outputTokens * perTokenMs,
      outputTokens,
      reportedPromptTokens: promptTokens,
      cachedTokens: promptTokens - uncachedTokens,
      inflightAtEnd: inflight,
      promptTokensAtEnd: inflight * 3000,
      staged: false,
    };
  });
}

/** One sample after the other into the model. */
function learning(endpoints: number) {
  const model = new CostModel(settings.model);
  const all = makeSamples(endpoints);
  let at = 0;
  return () => {
    const sample = all[at++ % all.length]!;
    sample.timeMs = at;
    model.learn(sample);
  };
}

/** A tick of the adapter at `rate` requests a second, over the memory of a pool. */
function ticks(endpoints: number, rate: number) {
  const core = attachCore(createPoolMemory({ ...defaultPoolSizes, endpoints: Math.max(64, endpoints) }), 0);
  const table = new EndpointTable(core);
  for (let slot = 0; slot < endpoints; slot++) table.open(slot, 1);
  const all = makeSamples(endpoints);
  const perTick = (rate * TICK_MS) / 1000;
  let at = 0;
  let nowMs = 0;
  const adapter = new Adapter({
    settings,
    samples: {
      lost: 0,
      drain(visit) {
        for (let i = 0; i < perTick; i++) {
          const sample = all[at++ % all.length]!;
          sample.timeMs = nowMs - 50;
          sample.tag = adapter.drive.tag;
          visit(sample);
        }
        return perTick;
      },
    },
    computed: () => ({ computed: 0, evicted: 0 }),
    coefficients: new CostTable(core),
    drive: () => {},
    overloaded: () => false,
    changed: () => {},
    random: () => 0.5,
  });
  adapter.start(0);
  return () => {
    nowMs += TICK_MS;
    adapter.tick(nowMs);
  };
}

export const benches = SIZES.flatMap((endpoints) => [
  { name: `adaptation/sample/${endpoints}`, setup: async () => ({ run: learning(endpoints) }) },
  {
    name: `adaptation/second-of-1000/${endpoints}`,
    async setup() {
      const tick = ticks(endpoints, 1000);
      return {
        run() {
          for (let passed = 0; passed < 1000; passed += TICK_MS) tick();
        },
      };
    },
  },
]);
