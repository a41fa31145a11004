// Makes docs/outside-benchmarks.md anew: benchmarks that others wrote, through Envoy, against pickers in front of four
// simulated servers.
//   sh scripts/install-load-generators.sh
//   LLM_D_ROUTER=/path/to/epp npm run outside-benchmarks -- --tokenizer FOLDER [--runs 5] [--only TEXT] [--most N]
// Without LLM_D_ROUTER the picker of llm-d takes no part. All pickers get the same traffic in turns: the order changes
// from run to run, and the seed is the number of the run. FOLDER holds tokenizer.json of any model. Every run is kept
// in the file of --kept, and a call goes on where the last one ended, after --most further runs.
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { MODEL, startDemoStack } from '../dist/tools/demo/demo-stack.js';
import { findEnvoy } from '../dist/tools/demo/envoy-process.js';
import { engineOf } from '../dist/tools/simulator/server/engine.js';
import { GENERATORS, type Generator } from './outside-benchmarks/generators.ts';
import { ARMS, type Arm, type OutsideRun, outsidePage } from './outside-benchmarks/page.ts';

const root = resolve(import.meta.dirname, '..');
const programs = process.env.LOAD_GENERATORS ?? join(root, '.tools/load-generators');
const router = process.env.LLM_D_ROUTER;
const SERVERS = 4;
/** An L40S with memory for a part of the traffic's prompts. */
const ENGINE = { ...engineOf('llama-8b-l40s'), blocks: 6_000 };

const { values } = parseArgs({
  options: {
    tokenizer: { type: 'string' },
    runs: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
    most: { type: 'string', default: '1000' },
    kept: { type: 'string', default: 'outside-benchmarks.jsonl' },
    page: { type: 'string', default: join(root, 'docs/outside-benchmarks.md') },
  },
});

function countOf(flag: 'runs' | 'most'): number {
  const count = Number(values[flag]);
  if (Number.isInteger(count) && count >= 1) return count;
  throw new Error(`--${flag}: expected a whole number from 1 on, got "${values[flag]}"`);
}

/** @throws Error that names the flag, or the program that is not installed and the command that installs it */
function checked(): { tokenizer: string; envoy: string; generators: readonly Generator[] } {
  const tokenizer = resolve(values.tokenizer ?? '');
  if (values.tokenizer === undefined || !existsSync(join(tokenizer, 'tokenizer.json'))) {
    throw new Error('--tokenizer: name a folder with the tokenizer.json of a model');
  }
  const generators = GENERATORS.filter(({ name }) => name.includes(values.only));
  if (generators.length === 0) {
    throw new Error(`--only: "${values.only}" is in no name: ${GENERATORS.map(({ name }) => name).join('; ')}`);
  }
  if (!existsSync(join(programs, 'version'))) {
    throw new Error('the load generators are not installed: run sh scripts/install-load-generators.sh');
  }
  const envoy = findEnvoy();
  if (envoy === undefined) throw new Error('there is no Envoy: run sh scripts/install-envoy.sh');
  return { tokenizer, envoy, generators };
}

async function once(arm: Arm, generator: Generator, run: number): Promise<OutsideRun> {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-outside-'));
  const picker = arm.isLlmD ? [router!] : undefined;
  const ports = { port: 0, grpcPort: 0, metricsPort: 0 };
  const stack = await startDemoStack({
    servers: SERVERS,
    engine: ENGINE,
    ...ports,
    picker,
    envoy,
    settings: arm.settings,
  });
  try {
    const traffic = { url: stack.url, model: MODEL, tokenizer, seed: run, folder };
    const result = await generator.run(programs, traffic);
    let queries = 0;
    let hits = 0;
    for (const server of stack.fleet.servers) {
      queries += server.stats().prefixQueries;
      hits += server.stats().prefixHits;
    }
    return { ...result, generator: generator.name, arm: arm.name, run, hits: hits / Math.max(1, queries) };
  } finally {
    await stack.stop();
    rmSync(folder, { recursive: true });
  }
}

function kept(): OutsideRun[] {
  if (!existsSync(values.kept)) return [];
  const lines = readFileSync(values.kept, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as OutsideRun);
}

const { tokenizer, envoy, generators } = checked();
const runs = countOf('runs');
let left = countOf('most');
const arms = ARMS.filter(({ isLlmD }) => !isLlmD || router !== undefined);
if (router === undefined) console.error('outside-benchmarks: LLM_D_ROUTER names no picker of llm-d: it takes no part');
const found = kept();
for (let run = 1; run <= runs; run++) {
  for (const generator of generators) {
    for (let turn = 0; turn < arms.length && left > 0; turn++) {
      const arm = arms[(turn + run) % arms.length]!;
      const isKept = found.some(
        (each) => each.run === run && each.arm === arm.name && each.generator === generator.name,
      );
      if (isKept) continue;
      const each = await once(arm, generator, run);
      left--;
      found.push(each);
      appendFileSync(values.kept, `${JSON.stringify(each)}\n`);
      const figures = `TTFT ${each.ttftMean.toFixed(0)} ms, hits ${each.hits.toFixed(3)}`;
      console.log(`run ${run}, ${generator.name}, ${arm.name}: ${figures}, ${each.failed} failed`);
    }
  }
}
writeFileSync(values.page, outsidePage(found));
