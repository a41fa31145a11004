import { Command, InvalidArgumentError, Option } from 'commander';
import type { AdaptationMode } from '../../src/config/adaptation.js';
import { FlagError } from '../../src/serve/flag-error.js';
import { factor, listenFailure, portNumber } from '../../src/serve/port.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { engineOf } from '../simulator/server/engine.js';
import { type DemoStack, type HouseOptions, MODEL, startDemoStack } from './demo-stack.js';
import { keepTalking, runLoad } from './load.js';
import { runOverload } from './overload.js';
import { waitingRequests } from './picker-process.js';
import { OverloadTable, SharedPromptTable, TurnTable } from './report.js';
import { BETTER_SCORER, runSharedPrompt } from './shared-prompt.js';
import { showShift } from './shift/show.js';

interface DemoFlags {
  readonly port: number;
  readonly servers: number;
  readonly conversations: number;
  readonly turns: number;
  readonly speedup: number;
  readonly grpcPort: number;
  readonly metricsPort: number;
  readonly once: boolean;
  readonly overload: boolean;
  readonly shift: boolean;
  readonly sharedPrompt: boolean;
  readonly mode: AdaptationMode;
  readonly seed: number;
  readonly load: number;
  readonly seconds?: number;
  readonly picker?: string;
}

const SYSTEM_PROMPTS = 4;
const OVERLOAD_SECONDS = 16;
/** Load after the table, so that the page shows the picker at work. */
const SMALL_TALK = { conversations: 8, turns: 5, systemPrompts: SYSTEM_PROMPTS, answerTokens: 48 };
const SHIFT_SECONDS = 60;
const SHARED_PROMPT_SECONDS = 12;
/** Load at which one L40S is busy and four are at ease. */
const SHARED_PROMPT = { perSecond: 24, answerTokens: 48 };

/**
 * A flood of some six times what four servers can take: at the speed of an L40S a prompt of 4,000 tokens keeps one of
 * them busy for a third of a second.
 */
const OVERLOAD = {
  interactivePerSecond: 3,
  batchPerSecond: 60,
  promptBytes: 16_000,
  answerTokens: 8,
};

/**
 * Flow control of the overload demo: interactive requests first; a batch request is rejected at an expected wait over 5
 * s.
 */
const OVERLOAD_SETTINGS = `featureGates: [flowControl]
flowControl:
  defaultRequestTTL: 10s
  maxExpectedWait: 5s
  priorityBands:
  - {priority: 10, fairnessPolicyRef: start-time-fairness-policy}
  - {priority: -10, fairnessPolicyRef: start-time-fairness-policy}
`;
const OVERLOAD_PLUGINS = '- type: start-time-fairness-policy\n';
const OBJECTIVES = `objectives:
- {name: interactive, priority: 10}
- {name: batch, priority: -10}
`;

/**
 * `pointsman demo`: simulated model servers, the picker, the embedded gateway and a short load of conversations.
 * Resolves to the exit code: after the load with `--once`, otherwise after Ctrl-C.
 */
export async function runDemo(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<DemoFlags>(demoCommand(), argv);
  if (parsed === undefined) return 0;
  const flags = parsed.options;
  refuseTwoShows(flags);
  const stacks: DemoStack[] = [];
  const ending = new AbortController();
  const interrupted = new Promise<undefined>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve(undefined));
  });
  try {
    const show = showOf(flags)(flags, stacks, ending.signal);
    const failed = await Promise.race([show, interrupted]);
    if (failed === undefined) return 0;
    if (flags.once || flags.shift || flags.sharedPrompt) return failed > 0 ? 1 : 0;
    await Promise.race([interrupted, stacks[0]!.picker.ended.then((line) => Promise.reject(new Error(line)))]);
    return 0;
  } catch (error) {
    console.error(`pointsman: ${listenFailure(error, flags.port)}`);
    return 1;
  } finally {
    ending.abort();
    for (const stack of stacks) await stack.stop();
  }
}

/** A show resolves to the number of failed requests. */
type Show = (flags: DemoFlags, stacks: DemoStack[], signal: AbortSignal) => Promise<number>;

function showOf({ shift: shifts, sharedPrompt }: DemoFlags): Show {
  if (sharedPrompt) return showSharedPrompt;
  return shifts ? shift : oneStack;
}

function refuseTwoShows({ overload, shift: shifts, sharedPrompt }: DemoFlags): void {
  const chosen = [overload && '--overload', shifts && '--shift', sharedPrompt && '--shared-prompt'].filter(Boolean);
  if (chosen.length > 1) throw new FlagError(`${chosen.join(' and ')} exclude each other: give only one of them`);
}

/** The load or the overload; resolves to the number of failed requests. */
async function oneStack(flags: DemoFlags, stacks: DemoStack[], signal: AbortSignal): Promise<number> {
  const stack = await startDemoStack(stackOptions(flags));
  stacks.push(stack);
  const { fleet, picker, url } = stack;
  const ports = fleet.servers.map((server) => server.port).join(', ');
  console.log(`\n  model servers  ${fleet.servers.length} simulated, on ${ports}`);
  console.log(`  picker         ext_proc on 127.0.0.1:${picker.grpcPort}, metrics ${picker.metricsUrl}`);
  console.log(`  gateway        ${url}`);
  if (flags.picker === undefined) console.log(`  page           ${pageOf(picker.metricsUrl)}`);
  console.log('');
  const died = picker.ended.then((line) => Promise.reject(new Error(line)));
  const failed = await Promise.race([flags.overload ? showOverload(stack, flags) : showLoad(stack, flags), died]);
  if (flags.once) return failed;
  console.log(flags.overload ? '\n  Ctrl-C ends everything.' : whatToLookAt(url, picker.metricsUrl));
  if (flags.picker === undefined && !flags.overload) {
    // Its failures show on the page.
    void keepTalking({ url, model: MODEL, ...SMALL_TALK, first: flags.conversations }, signal);
  }
  return failed;
}

/** The shift, which ends by itself; resolves to the number of failed requests. */
function shift(flags: DemoFlags, stacks: DemoStack[], signal: AbortSignal): Promise<number> {
  if (flags.picker !== undefined) throw new Error('--shift compares two ways of this picker: leave --picker out');
  const { servers, speedup, load, mode, seed, port, grpcPort, metricsPort, seconds = SHIFT_SECONDS } = flags;
  const started = (both: readonly DemoStack[]) => stacks.push(...both);
  return showShift({ servers, speedup, load, mode, seed, seconds, port, grpcPort, metricsPort, signal, started });
}

/** One system prompt for all requests, to two pools at once: by the default weights, and by the better scorer. */
async function showSharedPrompt(flags: DemoFlags, stacks: DemoStack[], signal: AbortSignal): Promise<number> {
  if (flags.picker !== undefined) throw new Error('--shared-prompt compares two profiles: leave --picker out');
  const { servers, speedup, port, grpcPort, metricsPort, load, seconds = SHARED_PROMPT_SECONDS } = flags;
  const engine = { ...engineOf('llama-8b-l40s'), speedup };
  const house = { servers, engine, picker: undefined };
  stacks.push(await startDemoStack({ ...house, port: 0, grpcPort: 0, metricsPort: 0 }));
  const scorers = `- type: ${BETTER_SCORER}\n`;
  stacks.push(await startDemoStack({ ...house, port, grpcPort, metricsPort, scorers }));
  const { perSecond, answerTokens } = SHARED_PROMPT;
  const rate = Math.max(1, Math.round(perSecond * speedup * load));
  const table = new SharedPromptTable(
    stacks[0]!.fleet.servers.map(({ name }) => name),
    answerTokens,
  );
  console.log(
    `\n  ${rate} requests a second with one system prompt to each of two pools of ${servers} simulated servers`,
  );
  console.log('  per server: requests answered by each of them\n');
  console.log(table.head(['default: queue 2, KV 2, prefix 3', BETTER_SCORER]));
  const options = { urls: stacks.map(({ url }) => url), model: MODEL, seconds, perSecond: rate, answerTokens, signal };
  const pools = await runSharedPrompt(options, (second, answers) => console.log(table.row(String(second), answers)));
  console.log(`${table.row('all', pools)}\n`);
  const errors = pools.flatMap((pool) => pool.errors);
  for (const error of new Set(errors)) console.error(`  failed: ${error}`);
  return errors.length;
}

/** Settings of a demo stack for the conversations or the overload. */
function stackOptions(flags: DemoFlags): HouseOptions {
  const { servers, speedup, port, grpcPort, metricsPort, picker } = flags;
  const ports = { port, grpcPort, metricsPort };
  const overload = flags.overload ? { settings: OVERLOAD_SETTINGS, plugins: OVERLOAD_PLUGINS } : {};
  const engine = { ...engineOf('llama-8b-l40s'), speedup };
  return { servers, engine, ...ports, picker: picker?.split(/\s+/), objectives: OBJECTIVES, ...overload };
}

/** Runs the load and prints its table; resolves to the number of failed requests. */
async function showLoad({ url, fleet }: DemoStack, flags: DemoFlags): Promise<number> {
  const table = new TurnTable(fleet.servers.map((server) => server.name));
  console.log(
    `  ${flags.conversations} conversations, ${SYSTEM_PROMPTS} shared system prompts, ${flags.turns} turns\n`,
  );
  console.log(table.head());
  const errors: string[] = [];
  const load = { conversations: flags.conversations, turns: flags.turns, systemPrompts: SYSTEM_PROMPTS };
  await runLoad({ url, model: MODEL, ...load, answerTokens: 24 }, (turn) => {
    console.log(table.row(turn));
    errors.push(...turn.errors);
  });
  for (const error of new Set(errors)) console.error(`  failed: ${error}`);
  return errors.length;
}

/** Runs the overload and prints its table; resolves to the number of interactive requests that failed. */
async function showOverload({ url, fleet, picker }: DemoStack, flags: DemoFlags): Promise<number> {
  const table = new OverloadTable();
  const { batchPerSecond, interactivePerSecond } = OVERLOAD;
  const { seconds = OVERLOAD_SECONDS } = flags;
  const [floodFrom, floodTo] = [1 + Math.floor(seconds / 4), 1 + Math.floor(0.6 * seconds)];
  console.log(
    `  ${interactivePerSecond} interactive requests a second; from second ${floodFrom} to ${floodTo} (*) ` +
      `${batchPerSecond} batch requests a second, far more than the servers can take\n`,
  );
  console.log(table.head());
  const totals = await runOverload({ url, model: MODEL, seconds, floodFrom, floodTo, ...OVERLOAD }, async (second) => {
    const inServers = fleet.servers.reduce((sum, server) => sum + server.stats().waiting, 0);
    console.log(table.row(second, [await waitingRequests(picker.metricsUrl), inServers]));
  });
  const { interactive, interactiveFailed, batchAnswered, batchRefused } = totals;
  console.log(`\n  ${interactive} interactive requests answered, ${interactiveFailed.length} failed`);
  console.log(`  ${batchAnswered} batch requests answered, ${batchRefused} told to come again later`);
  for (const error of new Set(interactiveFailed)) console.error(`  failed: ${error}`);
  return interactiveFailed.length;
}

/** Address of the page on the metrics port. */
function pageOf(metricsUrl: string): string {
  return new URL('/ui/', metricsUrl).href;
}

function whatToLookAt(url: string, metricsUrl: string): string {
  return `
  Later turns find their prompt cached: the picker sends a conversation back to the server that has it.

  Try it (one token at a time; the header x-inference-pod names the server):
    curl -Ni ${url}/v1/chat/completions -H 'content-type: application/json' \\
      -d '{"model":"${MODEL}","stream":true,"messages":[{"role":"user","content":"Hello"}]}'

  Look at the picker, and click on "why" beside a decision (eight small conversations go on in the background):
    ${pageOf(metricsUrl)}

  Ctrl-C ends everything.`;
}

function demoCommand(): Command {
  return new Command('pointsman demo')
    .description('Simulated model servers, the picker, a gateway and a short load, all on this machine.')
    .option('--port <port>', 'port of the gateway', portNumber, 8081)
    .option('--servers <count>', 'simulated model servers', atLeastOne, 4)
    .option('--conversations <count>', 'conversations of the load', atLeastOne, 24)
    .option('--turns <count>', 'turns of each conversation', atLeastOne, 3)
    .option('--speedup <factor>', 'how much faster than an L40S the servers compute', factor, 1)
    .option('--grpc-port <port>', "port of the picker's ext_proc; 0 = a free one", portNumber, 0)
    .option('--metrics-port <port>', "port of the picker's metrics; 0 = a free one", portNumber, 0)
    .option('--overload', 'a flood of batch requests beside interactive ones, with flow control on', false)
    .option('--shift', 'traffic that changes, to two pools: one by the configured weights, one by learned costs', false)
    .option(
      '--shared-prompt',
      `one system prompt for all requests, to two pools: by the default weights, and by ${BETTER_SCORER}`,
      false,
    )
    .addOption(
      new Option('--mode <mode>', 'how learned costs decide in the second pool of the shift')
        .choices(['auto', 'always'])
        .default('always'),
    )
    .option('--seed <number>', 'of the shifting traffic, its servers and pickers', atLeastOne, 1)
    .option('--load <factor>', 'the shift and the shared prompt: so many times as many requests', factor, 1)
    .option(
      '--seconds <count>',
      `length of the overload (default: ${OVERLOAD_SECONDS}), the shift (${SHIFT_SECONDS}) or the shared prompt ` +
        `(${SHARED_PROMPT_SECONDS})`,
      atLeastOne,
    )
    .option('--once', 'end after the load', false)
    .option('--picker <command>', 'another picker to start instead, given the flags that llm-d understands');
}

function atLeastOne(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1 || count > 10_000)
    throw new InvalidArgumentError('expected a number from 1 to 10000');
  return count;
}
