import type { AdaptationMode } from '../../../src/config/adaptation.js';
import type { DemoStack } from '../demo-stack.js';
import { findEnvoy } from '../envoy-process.js';
import { comparison, LiveTable, learnedText } from './report.js';
import { runShift } from './shift.js';
import { PHASES, planTraffic } from './traffic.js';

export interface ShowOptions {
  /** Mode of learned costs in the second pool. */
  readonly mode: AdaptationMode;
  readonly seed: number;
  readonly servers: number;
  readonly speedup: number;
  /** Factor on all rates. */
  readonly load: number;
  readonly seconds: number;
  /** Of the second pool; 0 = a free one. */
  readonly port: number;
  readonly grpcPort: number;
  readonly metricsPort: number;
  /** Ends it before its time. */
  readonly signal: AbortSignal;
  readonly started: (stacks: readonly DemoStack[]) => void;
}

/** Times that the live table is written in each phase. */
const WINDOWS_PER_PHASE = 5;

/**
 * The same traffic to two pools, one decided by the configured weights and one as `mode` says, and what each came to;
 * resolves to the number of requests that failed.
 */
export async function showShift(options: ShowOptions): Promise<number> {
  const { servers, speedup, load, seconds, seed, mode, port, grpcPort, metricsPort, signal } = options;
  const envoy = findEnvoy();
  const plan = planTraffic({ seed, servers, speedup, load, seconds });
  const table = new LiveTable();
  const runs = await runShift({
    pools: [
      { name: 'configured', mode: 'shadow', port: 0, grpcPort: 0, metricsPort: 0 },
      { name: mode, mode, port, grpcPort, metricsPort },
    ],
    plan,
    seed,
    servers,
    speedup,
    envoy,
    signal,
    windowMs: (1_000 * seconds) / PHASES.length / WINDOWS_PER_PHASE,
    started: (stacks) => {
      options.started(stacks);
      console.log(introduction(options, plan.length, envoy, stacks));
      console.log(table.head());
    },
    show: (window) => console.log(table.rows(window)),
  });
  console.log(`\n${comparison(runs[0]!, runs[1]!)}\n`);
  console.log(`${runs.map(learnedText).join('\n')}\n`);
  const failed = runs.flatMap(({ outcomes }) => outcomes.flatMap(({ error }) => error ?? []));
  for (const error of new Set(failed)) console.error(`  failed: ${error}`);
  return failed.length;
}

function introduction(
  { mode, seed, seconds, servers }: ShowOptions,
  requests: number,
  envoy: string | undefined,
  stacks: readonly DemoStack[],
): string {
  const [fixed, learned] = stacks.map(({ picker }) => new URL('/debug/adaptation', picker.metricsUrl));
  const proxy = envoy ?? 'no Envoy found (ENVOY_BIN, .tools, PATH): the embedded gateway asks the picker';
  return `
  proxy       ${proxy}
  traffic     ${requests} requests in ${seconds} s to each of two pools of ${servers} simulated servers, seed ${seed}
  phases      ${PHASES.map(({ name }) => name).join(', ')} (server-0 takes twice as long)
  configured  adaptation: {mode: shadow}, the default: the configured weights decide; ${fixed}
  ${mode.padEnd(10)}  adaptation: {mode: ${mode}}: \
learned costs decide${mode === 'auto' ? ' when the guard lets them' : ''}; ${learned}
  cost        mean of time to first token / 2 s + time per further token / 60 ms
  weights     of 1,000 tokens outside the cache, 1,000 tokens ahead in the queue,\
 a waiting request, a running request and
              100,000 tokens in the KV cache, in thousandths of that cost
`;
}
