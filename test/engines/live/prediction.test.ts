// What the picker thinks that an endpoint holds of a prompt, beside the engine's own `cached_tokens`, for the table of
// docs/guides/engines.md.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seededRandom } from '../../../dist/src/runtime/seeded-random.js';
import { Bed, type Compared, preciseProfile, type Tokens } from '../bed.ts';
import { type PredictionRow, Recording } from '../recordings.ts';
import {
  BLOCK_TOKENS,
  type EngineOptions,
  MODEL_NAME,
  skipReason,
  VllmProcess,
  vllmVersion,
  writeEngineTokeniser,
} from '../vllm.ts';

const EVENT_PORT = 31_661;
const REPLAY_PORT = 31_671;
const PORT = 31_651;
const HOSTS = ['127.0.1.51', '127.0.1.52'] as const;
const ENDPOINTS = HOSTS.map((address, rank) => ({ name: `e-rank-${rank}`, address, port: PORT }));
/** Of each engine: 12,800 tokens, more than one prompt of the model's length. */
const BLOCKS = 400;

const SOURCE = readFileSync(new URL('../../../docs/plugins.md', import.meta.url), 'utf8').replace(/[^ -~\n]/g, '');
const random = seededRandom(24n);

function piece(bytes: number): string {
  const from = Math.floor(random() * (SOURCE.length - bytes));
  return SOURCE.slice(from, from + bytes);
}

function engine(rank: number): EngineOptions {
  const [endpoint, replay] = [EVENT_PORT, REPLAY_PORT].map((port) => `tcp://*:${port + rank}`);
  const topic = `kv@${HOSTS[rank]}:${PORT}@${MODEL_NAME}`;
  const events = { endpoint: endpoint!, replay: replay!, topic };
  return { host: HOSTS[rank]!, port: PORT, blocks: BLOCKS, events, args: rank === 0 ? ['--enable-scale-out'] : [] };
}

interface Traffic {
  readonly conversations: number;
  readonly turns: number;
}

/** Three turns each; all fit into the caches. */
const SMALL: Traffic = { conversations: 12, turns: 3 };
/** More than both caches hold. */
const LARGE: Traffic = { conversations: 60, turns: 2 };

const recording = new Recording(`vllm-${vllmVersion}`);
const folder = mkdtempSync(join(tmpdir(), 'pointsman-prediction-'));
const LOCAL: Tokens = { local: join(folder, 'tokeniser') };
const EVENTS = `{podDiscoveryConfig: {socketPort: ${EVENT_PORT}, replaySocketPort: ${REPLAY_PORT}}}`;
const precise = (tokens: Tokens) =>
  preciseProfile({ tokens, blockTokens: BLOCK_TOKENS, events: EVENTS, model: MODEL_NAME });

describe.skipIf(skipReason !== '')(`predictions for vLLM ${vllmVersion ?? ''}${skipReason}`, () => {
  let engines: VllmProcess[];
  const rows: PredictionRow[] = [];

  beforeAll(async () => {
    writeEngineTokeniser(join(folder, 'tokeniser'));
    engines = await Promise.all([VllmProcess.engine(engine(0)), VllmProcess.engine(engine(1))]);
  });

  afterAll(async () => {
    recording.writePredictions(rows);
    await VllmProcess.killAll();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Turns of conversations, each of which goes on from a text that one before it has sent. */
  async function play(bed: Bed, { conversations, turns }: Traffic, isPrecise: boolean): Promise<readonly Compared[]> {
    const systems = [piece(1_200), piece(1_200), piece(1_200)];
    const texts = Array.from({ length: conversations }, (_, i) => `${systems[i % systems.length]}\n${piece(600)}`);
    const all: Compared[] = [];
    for (let turn = 0; turn < turns; turn++) {
      for (const [i, prompt] of texts.entries()) {
        const body = { model: MODEL_NAME, prompt, max_tokens: 4, ignore_eos: true };
        const compared = await bed.compare({ body });
        expect(compared.status).toBe(200);
        all.push(compared);
        texts[i] = `${prompt}\n${piece(400)}`;
        if (isPrecise) await bed.settle(100);
      }
    }
    return all;
  }

  /** Empties the caches, which the engines tell with their next step. */
  async function emptied(): Promise<void> {
    for (const one of engines) {
      await one.ask('/reset_prefix_cache', null);
      await one.ask('/v1/completions', { model: MODEL_NAME, prompt: piece(200), max_tokens: 1 });
    }
  }

  async function measure(setting: string, traffic: Traffic, tokens?: Tokens, before?: (bed: Bed) => Promise<unknown>) {
    await emptied();
    const bed = await Bed.start(ENDPOINTS, tokens && precise(tokens));
    try {
      await before?.(bed);
      const compared = await play(bed, traffic, tokens !== undefined);
      const error = async (estimate: string) =>
        (await bed.count('pointsman_token_estimate_error_tokens_total', `estimate="${estimate}"`)) ?? 0;
      const told = (await bed.count('pointsman_token_estimate_told_tokens_total')) ?? 0;
      const sum = (of: (one: Compared) => number) => compared.reduce((total, one) => total + of(one), 0);
      const row: PredictionRow = {
        setting,
        requests: compared.length,
        equal: compared.filter(({ predicted, told: engineTold }) => predicted.cached === engineTold.cached).length,
        prompt: sum((one) => one.told.prompt),
        predicted: sum((one) => one.predicted.cached),
        cached: sum((one) => Math.max(0, one.told.cached)),
        plainError: told === 0 ? 0 : (await error('plain')) / told,
        learnedError: told === 0 ? 0 : (await error('learned')) / told,
      };
      rows.push(row);
      return row;
    } finally {
      await bed.stop();
    }
  }

  it('cached tokens by placements are near those of the engine, and learned lengths nearer than plain ones', async () => {
    const { predicted, cached, prompt, plainError, learnedError } = await measure('default', SMALL);
    expect(Math.abs(predicted - cached) / prompt).toBeLessThan(0.2);
    expect(learnedError).toBeLessThan(plainError / 2);
  });

  it('cached tokens by events and tokens of the render server are those of the engine', async () => {
    const row = await measure('precise, render server', SMALL, { render: engines[0]!.url });
    expect(row.equal).toBe(row.requests);
  });

  it('cached tokens by events and own tokens are those of the engine', async () => {
    const row = await measure('precise, local tokens', SMALL, LOCAL);
    expect(row.equal).toBe(row.requests);
  });

  it('cached tokens by placements are near those of the engine where caches are full too', async () => {
    const { predicted, cached, prompt } = await measure('default, caches full', LARGE);
    expect(Math.abs(predicted - cached) / prompt).toBeLessThan(0.2);
  });

  it('cached tokens by events are those of the engine where caches are full too', async () => {
    const row = await measure('precise, local tokens, caches full', LARGE, LOCAL);
    expect(row.equal).toBe(row.requests);
  });

  it('cached tokens by events are those of the engine after a restart too', async () => {
    const row = await measure('precise, local tokens, after a restart', SMALL, LOCAL, async (bed) => {
      await play(bed, { conversations: 4, turns: 1 }, true);
      await engines[0]!.kill();
      engines[0] = await VllmProcess.engine(engine(0));
      // Events of the first requests are fetched when a later one shows that they are missing.
      await play(bed, { conversations: 6, turns: 1 }, true);
    });
    expect(row.equal).toBe(row.requests);
  });
});
