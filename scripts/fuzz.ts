// Plays random scripts for as long as is wanted: `npm run fuzz -- http2 [--frames 10000000] [--seed 1]` (HTTP/2
// frames), or `npm run fuzz -- ext-proc [--messages 10000000] [--seed 1]` (bytes and order of ext_proc messages).
// Prints what it finds with the seed that plays it again, and ends with exit code 1 when it has found something.
import { parseArgs } from 'node:util';
import { ExtProcScripts } from '../test/ingress/ext-proc-scripts.ts';
import { compare, leanPeer, nodePeer } from '../test/ingress/http2/differential.ts';
import { randomScript, type Script } from '../test/ingress/http2/script-generator.ts';

/** Between two lines that say how far it has come. */
const REPORT_MS = 10_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    frames: { type: 'string', default: '10000000' },
    messages: { type: 'string', default: '10000000' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
  },
});

/** Steps of every fourth script: many streams come and go on its connection. */
const LONG_STEPS_MAX = 1_000;

/** The script of a seed: an odd one breaks the protocol. */
function scriptOf(seed: number): Script {
  return seed % 4 === 0 ? randomScript(seed, false, LONG_STEPS_MAX) : randomScript(seed, seed % 2 === 1);
}

/** The lean transport beside node:http2. */
async function http2(framesMax: number, firstSeed: number): Promise<number> {
  const [lean, node] = await Promise.all([leanPeer(), nodePeer()]);
  let [frames, scripts, found] = [0, 0, 0];
  let reportedAt = performance.now();
  for (let seed = firstSeed; frames < framesMax; seed++) {
    const script = scriptOf(seed);
    const difference = await compare(lean, node, script);
    frames += script.frames;
    scripts++;
    if (difference !== undefined) {
      found++;
      console.log(`seed ${seed} (${script.flawed ? 'flawed' : 'valid'}): ${difference}`);
    }
    if (performance.now() - reportedAt < REPORT_MS) continue;
    reportedAt = performance.now();
    console.log(`${frames} frames in ${scripts} scripts, ${found} differences, seed ${seed}`);
  }
  console.log(`${frames} frames in ${scripts} scripts from seed ${firstSeed}: ${found} differences`);
  await lean.close();
  return found;
}

/** Streams of a shard, with the scanners of the core and everything behind them replaced. */
async function extProc(messagesMax: number, firstSeed: number): Promise<number> {
  const scripts = new ExtProcScripts();
  let found = 0;
  let reportedAt = performance.now();
  let seed = firstSeed;
  for (; scripts.messages < messagesMax; seed++) {
    const problem = await scripts.play(seed);
    if (problem !== undefined) {
      found++;
      console.log(`seed ${seed}: ${problem}`);
    }
    if (performance.now() - reportedAt < REPORT_MS) continue;
    reportedAt = performance.now();
    console.log(`${scripts.messages} messages, ${found} problems, seed ${seed}`);
  }
  console.log(`${scripts.messages} messages in ${seed - firstSeed} scripts from seed ${firstSeed}: ${found} problems`);
  return found;
}

const USAGE =
  'usage: npm run fuzz -- http2 [--frames number] [--seed number], or ext-proc [--messages number] [--seed number]';
const seed = Number(values.seed);

async function play(what: string | undefined): Promise<number> {
  if (what === 'http2') return http2(Number(values.frames), seed);
  if (what === 'ext-proc') return extProc(Number(values.messages), seed);
  throw new Error(USAGE);
}

process.exit((await play(positionals[0])) === 0 ? 0 : 1);
