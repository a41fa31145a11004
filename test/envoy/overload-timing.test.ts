// How well the high band is protected, in milliseconds: run by POINTSMAN_STRESS=1 only, on a machine with nothing else to do.
import { describe, expect, test } from 'vitest';
import { type OverloadOptions, runOverload } from '../../dist/cli/demo/overload.js';
import { engineOf } from '../../dist/simulator/server/engine.js';
import { startFleet } from '../../dist/simulator/server/fleet.js';
import { skipReason } from './envoy.ts';
import { pickerMetric, startHouse } from './house.ts';

const SECONDS = 60 * Number(process.env.POINTSMAN_STRESS ?? 0);

const PROFILE = `featureGates: [flowControl]
plugins:
- type: queue-scorer
- type: kv-cache-utilization-scorer
- type: prefix-cache-scorer
schedulingProfiles:
- name: default
  plugins: [{pluginRef: queue-scorer, weight: 2}, {pluginRef: prefix-cache-scorer, weight: 3}]
`;
const OBJECTIVES = 'objectives:\n- {name: interactive, priority: 10}\n- {name: batch, priority: -10}\n';

/**
 * A step at full batch and the largest prompt of the load, in milliseconds: 22 + 0.071 × 2,000 prompt tokens
 * (docs/simulated-servers.md). A request that arrives at a busy engine waits for the running step and shares its own.
 */
const STEP_MS = 22 + 0.071 * 2_000;

function percentile(values: readonly number[], share: number): number {
  return [...values].sort((a, b) => a - b)[Math.floor(share * (values.length - 1))]!;
}

const skip = skipReason !== '' || SECONDS === 0;

describe.skipIf(skip)(`ten times the load that the pool can take, for ${SECONDS} s`, () => {
  test(
    'keeps the first tokens of the high band as early as alone, and fails none of its requests',
    async () => {
      const fleet = await startFleet(4, { engine: engineOf('llama-8b-l40s') });
      const house = await startHouse(fleet.servers, { profile: PROFILE, objectives: OBJECTIVES });
      const load: OverloadOptions = {
        url: `http://127.0.0.1:${house.envoy.port}`,
        model: 'm',
        seconds: SECONDS,
        floodFrom: 1,
        floodTo: SECONDS + 1,
        interactivePerSecond: 4,
        batchPerSecond: 0,
        promptBytes: 8_000,
        answerTokens: 8,
      };
      try {
        const firstTokens = async (batchPerSecond: number) => {
          const all: number[] = [];
          const totals = await runOverload({ ...load, batchPerSecond }, async ({ firstTokensMs }) => {
            all.push(...firstTokensMs);
          });
          return { all, totals };
        };
        const alone = await firstTokens(0);
        const busy = await firstTokens(200);
        const [p99Alone, p99Busy] = [percentile(alone.all, 0.99), percentile(busy.all, 0.99)];
        const { batchAnswered } = busy.totals;
        console.log(`p99 alone ${p99Alone.toFixed(0)} ms, under load ${p99Busy.toFixed(0)} ms; ${batchAnswered} batch`);
        expect(busy.totals.interactiveFailed).toEqual([]);
        expect(p99Busy).toBeLessThan(1.2 * p99Alone + 2 * STEP_MS);
        expect(await pickerMetric(house.picker, 'llm_d_epp_flow_control_queue_size')).toBe(0);
      } finally {
        await house.stop();
      }
    },
    SECONDS * 5_000 + 60_000,
  );
});
