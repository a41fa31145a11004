import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { begin, eventually, nextPiece } from '../../tools/gateway/client.ts';
import { Bed, preciseProfile, type Tokens } from '../bed.ts';
import { EventTap } from '../event-tap.ts';
import { Recording, type StreamLine } from '../recordings.ts';
import {
  BLOCK_TOKENS,
  type EngineAnswer,
  type EngineOptions,
  MODEL_NAME,
  skipReason,
  TINY_MODEL,
  VllmProcess,
  vllmVersion,
  writeAdapter,
  writeEngineTokeniser,
} from '../vllm.ts';

const EVENT_PORT = 31_561;
const REPLAY_PORT = 31_571;
/** Port at which a picker waits for engines that connect. */
const BOUND_PORT = 31_581;
const HOSTS = ['127.0.1.41', '127.0.1.42'] as const;
const PORT = 31_551;
const ENDPOINTS = HOSTS.map((address, rank) => ({ name: `e-rank-${rank}`, address, port: PORT }));
const topic = (rank: number) => `kv@${HOSTS[rank]}:${PORT}@${MODEL_NAME}`;

const LORA = ['--enable-lora', '--max-lora-rank', '8'];

/** Engine that waits for subscribers: events on a port of its own, the second one on the next. */
function waiting(rank: number, args: readonly string[] = []): EngineOptions {
  const [endpoint, replay] = [EVENT_PORT, REPLAY_PORT].map((port) => `tcp://*:${port + rank}`);
  return { host: HOSTS[rank]!, port: PORT, events: { endpoint: endpoint!, replay: replay!, topic: topic(rank) }, args };
}

const TEXT = 'The picker follows the cache of every endpoint, and a prompt goes where most of it is held. ';
let prompts = 0;
/** A prompt that no engine has seen. */
const fresh = (repeats = 12) => `Prompt ${++prompts} ${randomUUID()}. ${TEXT.repeat(repeats)}`;
const completion = (prompt: string, more: object = {}) => ({
  body: { model: MODEL_NAME, prompt, max_tokens: 4, ignore_eos: true, ...more },
});
const chat = (content: string, more: object = {}) => ({
  path: '/v1/chat/completions' as const,
  body: { model: MODEL_NAME, messages: [{ role: 'user', content }], max_tokens: 4, ignore_eos: true, ...more },
});

const recording = new Recording(`vllm-${vllmVersion}`);
const answers: Record<string, EngineAnswer> = {};
const folder = mkdtempSync(join(tmpdir(), 'pointsman-engines-'));
const adapterFolder = join(folder, 'adapter');
const LOCAL: Tokens = { local: join(folder, 'tokeniser') };

const SOCKET_PORTS = `{podDiscoveryConfig: {socketPort: ${EVENT_PORT}, replaySocketPort: ${REPLAY_PORT}}}`;
const precise = (events = SOCKET_PORTS, tokens: Tokens = LOCAL, more = '') =>
  preciseProfile({ tokens, blockTokens: BLOCK_TOKENS, events, more, model: MODEL_NAME });

describe.skipIf(skipReason !== '')(`vLLM ${vllmVersion ?? ''}${skipReason}`, () => {
  let engines: VllmProcess[];
  const cleanups: (() => unknown)[] = [];

  beforeAll(async () => {
    writeAdapter(adapterFolder);
    writeEngineTokeniser(join(folder, 'tokeniser'));
    engines = await Promise.all([
      VllmProcess.engine(waiting(0, [...LORA, '--enable-scale-out'])),
      VllmProcess.engine(waiting(1, LORA)),
    ]);
  });

  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  afterAll(async () => {
    recording.writeAnswers(answers);
    await VllmProcess.killAll();
    rmSync(folder, { recursive: true, force: true });
  });

  async function bed(profile?: string, endpoints = ENDPOINTS): Promise<Bed> {
    const made = await Bed.start(endpoints, profile);
    cleanups.push(() => made.stop());
    return made;
  }

  /** The engine's own answer, recorded under a name. */
  async function record(name: string, engine: VllmProcess, path: string, body?: object | null): Promise<EngineAnswer> {
    const answer = await engine.ask(path, body);
    answers[name] = { ...answer, text: answer.text.replaceAll(folder, '/models') };
    return answer;
  }

  async function recordPage(name: string, engine: VllmProcess): Promise<string> {
    const { text } = await engine.ask('/metrics');
    recording.writePage(name, text);
    return text;
  }

  it('its signals are read from its page, and no scrape fails', async () => {
    const { count, page } = await bed().then((made) => ({
      count: made.count.bind(made),
      page: made.page.bind(made),
    }));
    expect(await count('pointsman_endpoint_scraped')).toBe(2);
    expect(await count('pointsman_scrape_errors_total')).toBe(0);
    expect(await page()).toMatch(/llm_d_epp_per_endpoint_queue_size\{[^}]*\} 0/);
    await recordPage('idle', engines[0]!);
  });

  it('it names the sockets of its events', async () => {
    const { status, text } = await record('kv_event_sources', engines[0]!, '/kv_event_sources');
    expect(status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({ '0': { publisher: 'zmq', endpoint: `tcp://*:${EVENT_PORT}` } });
  });

  it('tokens of the render server, of its own files and of usage.prompt_tokens are the same', async () => {
    const prompt = fresh();
    for (const tokens of [LOCAL, { render: engines[0]!.url }]) {
      const { compare } = await bed(precise(SOCKET_PORTS, tokens)).then((made) => ({
        compare: made.compare.bind(made),
      }));
      for (const request of [completion(prompt), chat(prompt), chat('é ü 漢字  two spaces, 1234.5 and\n\n\ttabs')]) {
        const { predicted, told } = await compare(request);
        expect(predicted.prompt).toBe(told.prompt);
      }
    }
    const rendered = await record('render', engines[0]!, '/v1/completions/render', {
      model: MODEL_NAME,
      prompt: 'hello',
    });
    expect(rendered.status).toBe(200);
  });

  it('a tokenizer.json whose pre-tokeniser the model class replaces gives other counts than usage.prompt_tokens', async () => {
    const made = await bed(precise(SOCKET_PORTS, { local: TINY_MODEL }));
    const { predicted, told } = await made.compare(completion(fresh()));
    expect(predicted.prompt).not.toBe(told.prompt);
  });

  it('an engine without --enable-scale-out refuses to render, and the picker counts the prompts as failed', async () => {
    const refused = await record('render_refused', engines[1]!, '/v1/completions/render', {
      model: MODEL_NAME,
      prompt: 'hello',
    });
    expect(refused.status).toBe(403);
    const made = await bed(precise(SOCKET_PORTS, { render: engines[1]!.url }));
    await made.compare(completion(fresh()));
    expect(await made.count('pointsman_token_requests_total', 'outcome="failed"')).toBe(1);
  });

  it('the prediction by its events equals its cached_tokens, block by block', async () => {
    const made = await bed(precise());
    const prompt = fresh();
    for (const request of [completion(prompt), completion(prompt), completion(`${prompt} ${TEXT.repeat(3)}`)]) {
      const { predicted, told } = await made.compare(request);
      expect(predicted).toEqual(told);
      await made.settle();
    }
    expect(await made.count('pointsman_kv_events_state', 'endpoint="e-rank-0"')).toBe(1);
    expect(await made.count('pointsman_kv_events_dropped_total')).toBeUndefined();
  });

  it('a picker that starts later fetches the events that the engines keep', async () => {
    const prompt = fresh();
    const first = await bed(precise());
    const { endpoint } = await first.compare(completion(prompt));
    await first.settle();
    const later = await bed(precise());
    // A first event shows that some were missed.
    for (let i = 0; i < 4; i++) await later.compare(completion(fresh()));
    await later.settle();
    expect(await later.count('pointsman_kv_events_replays_total', 'outcome="complete"')).toBeGreaterThan(0);
    const { predicted, told, endpoint: again } = await later.compare(completion(prompt));
    expect(again).toBe(endpoint);
    expect(predicted.cached).toBeGreaterThan(BLOCK_TOKENS);
    expect(predicted).toEqual(told);
  });

  it('blocks of a loaded adapter are apart from those of the model', async () => {
    for (const engine of engines) {
      const body = { lora_name: 'polite', lora_path: adapterFolder };
      expect(await record('load_lora_adapter', engine, '/v1/load_lora_adapter', body)).toMatchObject({ status: 200 });
    }
    const made = await bed(precise());
    const prompt = fresh();
    await made.compare(completion(prompt));
    await made.settle();
    const first = await made.compare(completion(prompt, { model: 'polite' }));
    expect([first.predicted.cached, first.told.cached]).toEqual([0, 0]);
    await made.settle();
    const second = await made.compare(completion(prompt, { model: 'polite' }));
    expect(second.endpoint).toBe(first.endpoint);
    expect(second.predicted.cached).toBeGreaterThan(BLOCK_TOKENS);
    expect(second.predicted).toEqual(second.told);
    await record('models', engines[0]!, '/v1/models');
    await recordPage('adapter', engines.find((_, rank) => second.endpoint.endsWith(`e-rank-${rank}`))!);
    for (const engine of engines) {
      const body = { lora_name: 'polite' };
      expect(await record('unload_lora_adapter', engine, '/v1/unload_lora_adapter', body)).toMatchObject({
        status: 200,
      });
    }
    const gone = await made.compare(completion(prompt, { model: 'polite' }));
    expect(gone.status).toBe(404);
    answers.unknown_adapter = { status: 404, type: 'application/json', text: gone.body };
  });

  it('a cleared cache is forgotten by the event that says so', async () => {
    const made = await bed(precise());
    const prompt = fresh();
    await made.compare(completion(prompt));
    await made.settle();
    for (const engine of engines) {
      expect(await record('reset_prefix_cache', engine, '/reset_prefix_cache', null)).toMatchObject({ status: 200 });
    }
    // vLLM tells of it with the events of its next step.
    for (const engine of engines) await engine.ask('/v1/completions', completion(fresh()).body);
    await eventually('the clears', async () => (await made.count('pointsman_kv_events_clears_total'))! >= 1);
    await made.settle();
    const { predicted, told } = await made.compare(completion(prompt));
    expect(predicted).toEqual(told);
    expect(predicted.cached).toBe(0);
  });

  it('a stream whose client leaves is over in the engine and in the picker', async () => {
    const made = await bed();
    const more = { stream: true, max_tokens: 4_000, stream_options: { include_usage: true } };
    const { body } = chat(fresh(), more);
    const { request, answer } = await begin(made.gatewayPort, { body: JSON.stringify(body) });
    expect(await nextPiece(answer)).toContain('data: ');
    answer.on('error', () => undefined);
    request.destroy();
    await eventually('the end in the picker', async () => (await made.count('pointsman_ledger_entries')) === 0);
    await eventually('the end in the engine', async () => {
      const pages = await Promise.all(engines.map((engine) => engine.ask('/metrics')));
      return pages.every(({ text }) => /^vllm:num_requests_running\{[^}]*\} 0\.0$/m.test(text));
    });
  });

  it('a paused engine keeps a request until it is resumed', async () => {
    const made = await bed(undefined, ENDPOINTS.slice(0, 1));
    const { body } = completion(fresh());
    expect(await record('pause', engines[0]!, '/pause', null)).toMatchObject({ status: 200 });
    const answer = made.compare({ body });
    await eventually('the request', async () => (await made.count('pointsman_ledger_entries')) === 1);
    await recordPage('paused', engines[0]!);
    expect(await record('resume', engines[0]!, '/resume', null)).toMatchObject({ status: 200 });
    expect((await answer).status).toBe(200);
  });

  it('a sleeping engine says so on its page', async () => {
    expect(await record('sleep', engines[0]!, '/sleep?level=1', null)).toMatchObject({ status: 200 });
    const page = await recordPage('asleep', engines[0]!);
    expect(await record('wake_up', engines[0]!, '/wake_up', null)).toMatchObject({ status: 200 });
    expect(page).toMatch(/^vllm:engine_sleep_state\{[^}]*sleep_state="weights_offloaded"\} 1\.0$/m);
  });

  it('its answers and its events are recorded in the order in which it gave them', async () => {
    const [engine] = engines;
    await engine!.ask('/reset_prefix_cache', null);
    const tap = new EventTap(`tcp://${HOSTS[0]}:${EVENT_PORT}`);
    cleanups.push(() => tap.close());
    // A subscriber hears what is sent after it has been let in.
    await eventually('the first event', async () => {
      await engine!.ask('/v1/completions', completion(fresh(2)).body);
      return tap.take().length > 0;
    });
    await engine!.ask('/reset_prefix_cache', null);
    await new Promise((resolve) => setTimeout(resolve, 500));
    const lines: StreamLine[] = tap.take().map(messageLine);
    const first = fresh(6);
    const turns: readonly (readonly [string, string])[] = [
      ['a new prompt', first],
      ['the same prompt', first],
      ['a longer prompt', `${first}${TEXT.repeat(4)}`],
      ['another prompt', fresh(6)],
      ['the longer prompt', `${first}${TEXT.repeat(4)}`],
    ];
    for (const [what, prompt] of turns) lines.push(...(await turn(engine!, tap, what, prompt)));
    await engine!.ask('/reset_prefix_cache', null);
    await new Promise((resolve) => setTimeout(resolve, 500));
    lines.push(...tap.take().map(messageLine));
    lines.push(...(await turn(engine!, tap, 'the first prompt after a cleared cache', first)));
    recording.writeStream('completions', lines);
    expect(
      lines.filter(({ kind }) => kind === 'answer').map((line) => 'cachedTokens' in line && line.cachedTokens),
    ).toEqual(
      [0, expect.any(Number), expect.any(Number), 0, expect.any(Number), 0].map((one) =>
        one === 0 ? expect.toSatisfy((cached: number) => cached < BLOCK_TOKENS * 2) : one,
      ),
    );
    await record('completion', engine!, '/v1/completions', completion(first).body);
    await record('chat', engine!, '/v1/chat/completions', chat(first).body);
    const streamed = { stream: true, stream_options: { include_usage: true } };
    await record('chat_stream', engine!, '/v1/chat/completions', chat(first, streamed).body);
    await record('completion_stream', engine!, '/v1/completions', completion(first, streamed).body);
  });

  async function turn(engine: VllmProcess, tap: EventTap, what: string, prompt: string): Promise<StreamLine[]> {
    const { body } = completion(prompt);
    const rendered = JSON.parse((await engine.ask('/v1/completions/render', body)).text) as readonly {
      token_ids: readonly number[];
    }[];
    const { usage } = JSON.parse((await engine.ask('/v1/completions', body)).text) as {
      usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
    };
    await new Promise((resolve) => setTimeout(resolve, 500));
    const answer: StreamLine = {
      ...{ kind: 'answer', what, model: MODEL_NAME, tokens: rendered[0]!.token_ids },
      ...{ cachedTokens: usage.prompt_tokens_details.cached_tokens, promptTokens: usage.prompt_tokens },
    };
    return [answer, ...tap.take().map(messageLine)];
  }

  it('what a killed engine held is forgotten when it comes back, and its events are followed again', async () => {
    const made = await bed(precise(), ENDPOINTS.slice(0, 1));
    const prompt = fresh();
    await made.compare(completion(prompt));
    await made.settle();
    expect(await made.count('pointsman_kv_events_engine_blocks')).toBeGreaterThan(0);
    await engines[0]!.kill();
    engines[0] = await VllmProcess.engine(waiting(0, LORA));
    const after = await made.compare(completion(prompt));
    expect(after.status).toBe(200);
    expect([after.predicted.cached, after.told.cached]).toEqual([0, 0]);
    // Events before the picker has connected again are fetched when a later one shows that they are missing.
    const isFollowed = async () => {
      await made.compare(completion(fresh(2)));
      await made.settle();
      return (await made.count('pointsman_kv_events_engine_blocks'))! > 0;
    };
    await eventually('the events', isFollowed, 30_000);
    const { predicted, told } = await made.compare(completion(prompt));
    expect(predicted).toEqual(told);
    expect(predicted.cached).toBeGreaterThan(BLOCK_TOKENS);
  });

  it('an engine that connects to zmqEndpoint is followed there', async () => {
    await engines[1]!.kill();
    const [, host] = HOSTS;
    const events = { endpoint: `tcp://127.0.0.1:${BOUND_PORT}`, topic: topic(1) };
    engines[1] = await VllmProcess.engine({ host, port: PORT, events, args: LORA });
    const made = await bed(
      precise(`{discoverPods: false, zmqEndpoint: "tcp://127.0.0.1:${BOUND_PORT}"}`),
      ENDPOINTS.slice(1),
    );
    // An engine tries again after some time to reach a picker that was not there.
    await eventually(
      'the events',
      async () => {
        await made.compare(completion(fresh(2)));
        return (await made.count('pointsman_kv_events_messages_total'))! > 0;
      },
      30_000,
    );
    const prompt = fresh();
    for (let i = 0; i < 2; i++) {
      const { predicted, told } = await made.compare(completion(prompt));
      expect(predicted).toEqual(told);
      await made.settle();
    }
    expect(await made.count('pointsman_kv_events_state')).toBe(1);
  });

  it('`vllm launch render` renders the same tokens without a model', async () => {
    await engines[0]!.kill();
    const [host] = HOSTS;
    const render = await VllmProcess.render(host, PORT);
    cleanups.push(() => render.kill());
    const made = await bed(
      precise(`{discoverPods: false, zmqEndpoint: "tcp://127.0.0.1:${BOUND_PORT}"}`, { render: render.url }),
      ENDPOINTS.slice(1),
    );
    const { predicted, told } = await made.compare(completion(fresh()));
    expect(predicted.prompt).toBe(told.prompt);
  });
});

function messageLine([topicName, number, payload]: readonly [string, number, Uint8Array]): StreamLine {
  return { kind: 'message', topic: topicName, number, payload: Buffer.from(payload).toString('base64') };
}
