import { describe, expect, test } from 'vitest';
import { builtinPlugins } from '../../../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../../../dist/src/config/load.js';
import { type FleetSettings, usualFleet } from '../../../../dist/tools/simulator/fleet/fleet-settings.js';
import { HARDWARE } from '../../../../dist/tools/simulator/fleet/hardware.js';
import { RandomStream } from '../../../../dist/tools/simulator/fleet/random-stream.js';
import { simulate } from '../../../../dist/tools/simulator/fleet/simulation.js';
import { fittedStepTime } from '../../../../dist/tools/simulator/fleet/step-time.js';
import { idealHitRatio, type Session, type Workload } from '../../../../dist/tools/simulator/fleet/workload.js';
import { baselines } from '../../../../dist/tools/simulator/suite/policies.js';
import { ContentIds, GrowingText } from '../../../../dist/tools/simulator/workloads/text.js';

const configurationOf = (name: string) =>
  loadConfiguration(
    { text: baselines.find((baseline) => baseline.name === name)!.configuration },
    { allowExperimental: true, registry: builtinPlugins },
  );

const hardware = HARDWARE['llama-8b-h100']!;

function fleet(endpoints: number, changed: Partial<FleetSettings> = {}, kvTokens = 131_072): FleetSettings {
  const endpoint = {
    limits: {
      blockTokens: 64,
      blocks: kvTokens / 64,
      maxBatchedTokens: 8192,
      maxSequences: 256,
      longPrefillTokens: 8192,
    },
    stepTime: fittedStepTime(hardware.constants),
    speed: 1,
    labels: {},
    joinMs: 0,
    leaveMs: Number.POSITIVE_INFINITY,
    lies: false,
  };
  return { ...usualFleet, endpoints: Array.from({ length: endpoints }, () => endpoint), ...changed };
}

/** `count` requests over `groups` shared beginnings of 2,000 tokens, one every `gapMs`. */
function traffic(count: number, gapMs: number, groups = 8, seed = 1): Workload {
  const random = new RandomStream(seed, 'traffic');
  const ids = new ContentIds();
  const beginnings = Array.from({ length: groups }, () => new GrowingText(64, ids).append(2_000));
  let startMs = 0;
  const sessions = Array.from({ length: count }, (): Session => {
    startMs += random.exponential(gapMs);
    const text = beginnings[random.below(groups)]!.copy().append(200 + random.below(400));
    const promptTokens = text.tokens;
    const outputTokens = 20 + random.below(80);
    const chain = text.append(outputTokens).chain();
    return { startMs, part: 0, turns: [{ promptTokens, outputTokens, chain, thinkMs: 0 }] };
  });
  return { blockTokens: 64, contents: ids.end + 1, sessions, parts: ['traffic'] };
}

/** One kind of prompt after another, none of which shares anything: number, milliseconds between two, tokens. */
function prompts(...kinds: readonly (readonly [count: number, gapMs: number, tokens: number])[]): Workload {
  const random = new RandomStream(1, 'prompts');
  const ids = new ContentIds();
  let startMs = 0;
  const sessions = kinds.flatMap(([count, gapMs, tokens]) =>
    Array.from({ length: count }, (): Session => {
      startMs += random.exponential(gapMs);
      const promptTokens = Math.round(tokens * (0.5 + random.uniform()));
      const chain = new GrowingText(64, ids).append(promptTokens + 40).chain();
      return { startMs, part: 0, turns: [{ promptTokens, outputTokens: 40, chain, thinkMs: 0 }] };
    }),
  );
  return { blockTokens: 64, contents: ids.end + 1, sessions, parts: ['prompts'] };
}

const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;

describe('a simulated fleet behind the real core', () => {
  test('latency targets that clients send move what learned costs pick', () => {
    const endpointsFor = (ttftMs: number, tpotMs: number) => {
      const client = { ...usualFleet.client, targets: { ttftMs, tpotMs } };
      const { requests } = simulate(traffic(600, 20), configurationOf('learned'), fleet(4, { client }), 1);
      return requests.map(({ endpoint }) => endpoint);
    };
    expect(endpointsFor(200, 10_000)).not.toEqual(endpointsFor(60_000, 5));
    // Costs are shares of targets, so it is their proportion alone that counts.
    expect(endpointsFor(1_000, 30)).toEqual(endpointsFor(2_000, 60));
  });

  test('the learner meets endpoints that join and leave, as that of the picker does', () => {
    const three = fleet(3).endpoints.map((endpoint, slot) => ({
      ...endpoint,
      ...(slot === 1 ? { joinMs: 30_000 } : {}),
      ...(slot === 2 ? { leaveMs: 60_000 } : {}),
    }));
    const run = simulate(traffic(600, 150), configurationOf('learned'), { ...fleet(3), endpoints: three }, 1);
    const known = (fromMs: number, toMs: number) =>
      new Set(
        run.learning!.filter(({ timeMs }) => timeMs > fromMs && timeMs < toMs).map(({ speeds }) => speeds.length),
      );
    expect([known(0, 30_000), known(30_000, 60_000), known(65_000, 85_000)]).toEqual([
      new Set([2]),
      new Set([3]),
      new Set([2]),
    ]);
  });

  test('same seed, same bytes; another seed, other ones', () => {
    const once = JSON.stringify(simulate(traffic(300, 20), configurationOf('default'), fleet(4), 7));
    expect(JSON.stringify(simulate(traffic(300, 20), configurationOf('default'), fleet(4), 7))).toBe(once);
    expect(JSON.stringify(simulate(traffic(300, 20), configurationOf('default'), fleet(4), 8))).not.toBe(once);
  });

  test('every request is served once, on an endpoint of the fleet', () => {
    const { requests, decisions } = simulate(traffic(400, 10), configurationOf('lmetric'), fleet(3), 1);
    expect(requests).toHaveLength(400);
    expect(decisions).toBe(400);
    expect(requests.every(({ status, endpoint }) => status === 'served' && endpoint >= 0 && endpoint < 3)).toBe(true);
    expect(requests.every(({ ttftMs, e2eMs }) => ttftMs > 0 && e2eMs >= ttftMs)).toBe(true);
  });

  test('more endpoints are never slower under round robin', () => {
    const times = [2, 4, 8].map((endpoints) =>
      mean(
        simulate(traffic(600, 8), configurationOf('round-robin'), fleet(endpoints, { stepNoise: 0 }), 1).requests.map(
          ({ e2eMs }) => e2eMs,
        ),
      ),
    );
    expect(times[1]).toBeLessThan(times[0]!);
    expect(times[2]).toBeLessThanOrEqual(times[1]! * 1.01);
  });

  test('one endpoint with an endless cache finds what an endless cache can find', () => {
    // Far apart in time, so that every request finds what those before it left.
    const workload = traffic(200, 5_000);
    const { requests } = simulate(workload, configurationOf('default'), fleet(1, {}, 6_400_000), 1);
    const found = mean(requests.map((r) => r.cachedTokens)) / mean(requests.map((r) => r.promptTokens));
    expect(found).toBeCloseTo(idealHitRatio(workload), 10);
  });

  test('prefix affinity finds more in the caches than round robin', () => {
    const hits = ['default', 'round-robin'].map((name) =>
      mean(simulate(traffic(500, 30, 40), configurationOf(name), fleet(4), 1).requests.map((r) => r.cachedTokens)),
    );
    expect(hits[0]).toBeGreaterThan(1.2 * hits[1]!);
  });

  test('KV events tell the index what the engines hold, output included', () => {
    const events = fleet(4, { kvEvents: { delayMs: 0, loss: 0 } });
    const { requests } = simulate(traffic(400, 30), configurationOf('precise'), events, 1);
    expect(mean(requests.map((r) => r.cachedTokens))).toBeGreaterThan(1_500);
    // Within one block of the truth, but for what happens on the way.
    expect(mean(requests.map((r) => Math.abs(r.expectedTokens - r.cachedTokens)))).toBeLessThan(64);
  });

  test('isolated replicas know less than replicas that share', () => {
    const replicas = (sharing: 'none' | 'all') =>
      fleet(4, { pickers: { replicas: 3, sharing, sharingDelayMs: 1, clockSkewMs: 0 } });
    const [shared, isolated] = (['all', 'none'] as const).map((sharing) =>
      mean(
        simulate(traffic(300, 30, 60), configurationOf('default'), replicas(sharing), 1).requests.map(
          (r) => r.cachedTokens,
        ),
      ),
    );
    expect(shared).toBeGreaterThan(1.1 * isolated!);
  });

  test('a crash loses nothing that the client sends again', () => {
    const crashed = fleet(3, { incidents: [{ kind: 'crash', endpoint: 1, atMs: 2_000, forMs: 3_000 }] });
    const { requests } = simulate(traffic(500, 15), configurationOf('default'), crashed, 1);
    expect(requests.filter(({ status }) => status !== 'served')).toEqual([]);
    expect(requests.some(({ attempts }) => attempts > 1)).toBe(true);
    const during = requests.filter((r) => r.arrivalMs > 2_500 && r.arrivalMs < 4_500 && r.endpoint === 1);
    expect(during.length).toBeLessThan(10);
  });

  test('a slow endpoint gets fewer requests from a policy that looks at load', () => {
    const slowed = fleet(4, { incidents: [{ kind: 'slow', endpoint: 0, atMs: 0, forMs: 1e9, factor: 0.3 }] });
    const { requests } = simulate(traffic(600, 8, 400), configurationOf('least-request'), slowed, 1);
    expect(requests.filter(({ endpoint }) => endpoint === 0).length).toBeLessThan(120);
  });

  test('endpoints that join late and leave early get requests only in between', () => {
    const { endpoints } = fleet(3);
    const changing = {
      ...fleet(3),
      endpoints: [endpoints[0]!, endpoints[1]!, { ...endpoints[2]!, joinMs: 2_000, leaveMs: 4_000 }],
    };
    const { requests } = simulate(traffic(500, 12), configurationOf('least-request'), changing, 1);
    const own = requests.filter(({ endpoint }) => endpoint === 2);
    expect(own.length).toBeGreaterThan(20);
    expect(own.every(({ arrivalMs }) => arrivalMs >= 2_000 && arrivalMs <= 4_000)).toBe(true);
  });

  test('a learning picker finds the constants of its engines and the slow endpoint', () => {
    const slowed = fleet(4, { incidents: [{ kind: 'slow', endpoint: 2, atMs: 0, forMs: 1e9, factor: 0.5 }] });
    const { learning } = simulate(traffic(3_000, 12, 400), configurationOf('learned'), slowed, 1);
    const { coefficients, speeds, samples, correlation } = learning!.at(-1)!;
    expect(samples).toBeGreaterThan(2_500);
    expect(correlation).toBeGreaterThan(0.5);
    // 8,192 tokens take 0.16 s by the engine's constants, 20 ms per thousand; the prior is 55.
    expect(coefficients.prefillMsPerKiloToken).toBeGreaterThan(12);
    expect(coefficients.prefillMsPerKiloToken).toBeLessThan(35);
    // Drawn towards 1 while it has few requests.
    expect(speeds[2]! / Math.max(speeds[0]!, speeds[1]!, speeds[3]!)).toBeGreaterThan(1.15);
  });

  test('a tenth of explored requests is worse than none', () => {
    const cost = (explores: number) =>
      mean(
        simulate(
          traffic(800, 8, 64),
          { ...configurationOf('learned'), ablation: { explores } },
          fleet(4),
          3,
        ).requests.map(({ ttftMs }) => ttftMs),
      );
    expect(cost(0.3)).toBeGreaterThan(cost(0));
  });

  test.each(baselines.filter(({ ablation }) => ablation !== undefined).map(({ name, ablation }) => [name, ablation!]))(
    'an ablation decides otherwise than what it is taken from: %s',
    (_name, ablation) => {
      const slots = (changed: object) =>
        simulate(
          traffic(1_500, 6),
          { ...configurationOf('learned'), ...changed },
          {
            ...fleet(4, {}, 32_768),
            endpoints: fleet(4, {}, 32_768).endpoints.map((e, i) => ({ ...e, speed: i === 0 ? 0.5 : 1 })),
          },
          3,
        ).requests.map(({ endpoint }) => endpoint);
      expect(slots({ ablation })).not.toEqual(slots({}));
    },
  );

  test('a learning picker keeps the price of prefill that long prompts showed through minutes of short ones', () => {
    const { learning } = simulate(
      prompts([400, 100, 6_000], [9_000, 20, 120]),
      configurationOf('learned'),
      fleet(4),
      1,
    );
    const price = (timeMs: number) =>
      learning!.find((sample) => sample.timeMs >= timeMs)!.coefficients.prefillMsPerKiloToken;
    const shown = price(45_000);
    expect(Math.abs(price(200_000) / shown - 1)).toBeLessThan(0.15);
    expect(learning!.at(-1)!.samples).toBeGreaterThan(9_000);
  });

  test('weights that are fitted to learned costs move the profile’s own scorers', () => {
    const { adaptation, scheduling } = configurationOf('default');
    const driven = { scheduling, adaptation: { ...adaptation, mode: 'always' as const, drive: 'weights' as const } };
    const slots = (configuration: typeof driven) =>
      simulate(traffic(2_000, 8), configuration, fleet(4), 3).requests.map(({ endpoint }) => endpoint);
    expect(slots(driven)).not.toEqual(slots({ scheduling, adaptation } as never));
  });

  test('samples with the times of other requests teach nothing true', () => {
    const samples = { lost: 0, distorted: 0, shuffled: 1 };
    const correlation = (changed: Partial<FleetSettings>) =>
      simulate(traffic(1_500, 8), configurationOf('learned'), fleet(4, changed), 3).learning!.at(-1)!.correlation!;
    expect(correlation({ samples })).toBeLessThan(correlation({}) - 0.2);
  });

  test('a policy that learns nothing has nothing to tell', () => {
    expect(simulate(traffic(50, 20), configurationOf('default'), fleet(2), 1).learning).toBeUndefined();
  });

  test('learning in the shadow changes no pick', () => {
    const configuration = configurationOf('default');
    const { adaptation } = configurationOf('guarded');
    const shadow = { ...configuration, adaptation: { ...adaptation, mode: 'shadow' as const } };
    const [off, on] = [configuration, shadow].map((c) => simulate(traffic(600, 12), c, fleet(4), 1).requests);
    expect(JSON.stringify(on)).toBe(JSON.stringify(off));
  });

  test('samples that are lost are not learned from', () => {
    const lossy = fleet(4, { samples: { lost: 0.5, distorted: 0, shuffled: 0 } });
    const { learning } = simulate(traffic(1_000, 12), configurationOf('learned'), lossy, 1);
    expect(learning!.at(-1)!.samples).toBeLessThan(600);
    expect(learning!.at(-1)!.samples).toBeGreaterThan(350);
  });

  test('an endpoint that lies draws what looks only at its metrics', () => {
    const { endpoints } = fleet(4);
    const lying = { ...fleet(4), endpoints: endpoints.map((endpoint, i) => ({ ...endpoint, lies: i === 3 })) };
    const drawn = simulate(traffic(800, 4, 400), configurationOf('load-only'), lying, 1).requests;
    const seen = simulate(traffic(800, 4, 400), configurationOf('least-request'), lying, 1).requests;
    const share = (requests: typeof drawn) => requests.filter(({ endpoint }) => endpoint === 3).length / 800;
    expect(share(drawn)).toBeGreaterThan(0.35);
    expect(share(seen)).toBeLessThan(0.3);
  });

  test('turns of a session follow each other', () => {
    const ids = new ContentIds();
    const text = new GrowingText(64, ids).append(3_000);
    const chain = text.chain();
    const turns = [1_000, 2_000, 2_900].map((promptTokens) => ({
      promptTokens,
      outputTokens: 50,
      chain: chain.subarray(0, Math.floor((promptTokens + 50) / 64)),
      thinkMs: 500,
    }));
    const workload = {
      blockTokens: 64,
      contents: ids.end + 1,
      sessions: [{ startMs: 0, turns, part: 0 }],
      parts: ['s'],
    };
    const { requests } = simulate(workload, configurationOf('default'), fleet(4), 1);
    for (const [i, request] of requests.slice(1).entries()) {
      expect(request.arrivalMs).toBeCloseTo(requests[i]!.arrivalMs + requests[i]!.e2eMs + 500, 6);
    }
    expect(requests.map(({ cachedTokens }) => cachedTokens > 0)).toEqual([false, true, true]);
  });

  test('clients that hang up free their endpoint', () => {
    const impatient = fleet(1, { client: { timeoutMs: 400, retries: 0, backoffMs: 0 } });
    const { requests } = simulate(traffic(200, 4, 200), configurationOf('default'), impatient, 1);
    const gone = requests.filter(({ status }) => status === 'timeout');
    expect(gone.length).toBeGreaterThan(20);
    expect(gone.every(({ e2eMs }) => Math.abs(e2eMs - 400) < 1e-6)).toBe(true);
    expect(requests).toHaveLength(200);
  });

  test.each([['blocks', { ...traffic(2, 1), blockTokens: 48 }, 'no multiple']])(
    'what cannot be simulated is said: %s',
    (_what, workload, message) => {
      expect(() => simulate(workload, configurationOf('default'), fleet(2), 1)).toThrow(message);
    },
  );
});
