// What real Envoy sends in each processing mode, and what the picker makes of it (docs/guides/processing-modes.md).
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { decodeProcessRequest, Phase } from '../../dist/src/ingress/codec/process-request.js';
import {
  encodeBodyReplies,
  encodeRequestHeadersReply,
  encodeResponseHeadersReply,
  encodeTrailersReply,
  Reply,
  setHeader,
} from '../../dist/src/ingress/codec/process-response.js';
import type { ProcessHandler, ProcessStream } from '../../dist/src/ingress/transport.js';
import { createTransport } from '../../dist/src/ingress/transports/create.js';
import { bytesField, numberField } from '../ingress/envoy-messages.ts';
import { type Backend, type Behaviour, Gate, sseEvent, startBackend } from '../tools/gateway/backend.ts';
import { ask, begin, chatBody, eventually } from '../tools/gateway/client.ts';
import { skipReason } from './envoy.ts';
import { startEnvoyWithModes } from './modes-envoy.ts';
import { pickerMetric, startTestBed, type TestBed } from './test-bed.ts';

const NO_METADATA = Buffer.alloc(0);
const EVENTS = 5;
/** The last event of a stream waits until a test lets it go. */
const lastEvent = new Gate();

/** Streams some events, or echoes the digest of the body that it received. */
const held: Behaviour = async ({ body }, response, backend) => {
  const asked = JSON.parse(body.toString()) as { model: string; stream?: boolean };
  response.setHeader('x-inference-pod', backend.name);
  if (asked.stream !== true) {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ model: asked.model, received: sha(body) }));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let index = 0; index < EVENTS; index++) {
    response.write(sseEvent(asked.model, `token ${index}`));
  }
  await lastEvent.next();
  response.end('data: [DONE]\n\n');
};

/** A sample configuration without its head and its discovery: the test bed brings its own endpoints. */
function sampleProfile(file: string): string {
  const text = readFileSync(new URL(`../../examples/${file}`, import.meta.url), 'utf8');
  const { plugins, schedulingProfiles, adaptation } = parse(text) as {
    readonly plugins: readonly { readonly type: string }[];
    readonly schedulingProfiles: unknown;
    readonly adaptation: unknown;
  };
  const others = plugins.filter(({ type }) => type !== 'file-discovery');
  return stringify({ plugins: others, schedulingProfiles, adaptation }, { indentSeq: false });
}

const servers = () => Promise.all(['s0', 's1', 's2'].map((name) => startBackend(name, held)));
const running = (bed: TestBed<Backend>) => pickerMetric(bed.picker, 'llm_d_epp_request_running');

describe.skipIf(skipReason !== '')(`Envoy without bodies${skipReason}`, () => {
  let bed: TestBed<Backend>;
  beforeAll(async () => {
    bed = await startTestBed(await servers(), {
      configuration: 'envoy-headers-only.yaml',
      profile: sampleProfile('headers-only.yaml'),
    });
  });
  afterAll(() => bed?.stop());

  test('a session goes to one endpoint by its header, and its body arrives to the byte', async () => {
    const body = chatBody('0123456789abcdef'.repeat(8 * 1024));
    const asked = { body, headers: { 'x-session-id': 'session-7' } };
    const first = await ask(bed.envoy.port, asked);
    // A busy endpoint is passed over, and Envoy tells of the end of an answer behind its last byte.
    await eventually('the charge is released', async () => (await running(bed)) === 0);
    const answers = [first, await ask(bed.envoy.port, asked)];
    for (const answer of answers) {
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.body.toString()).received).toBe(sha(body));
    }
    expect(answers[0]!.headers['x-inference-pod']).toBe(answers[1]!.headers['x-inference-pod']);
    const server = bed.servers.find(({ name }) => name === answers[0]!.headers['x-inference-pod'])!;
    expect(server.received.at(-1)!.headers['x-gateway-destination-endpoint']).toBe(`127.0.0.1:${server.port}`);
  });

  test('no byte of a request or of an answer comes to the picker', async () => {
    await ask(bed.envoy.port, { body: chatBody('anything') });
    expect(await pickerMetric(bed.picker, 'llm_d_epp_request_size_bytes_sum')).toBe(0);
    expect(await pickerMetric(bed.picker, 'llm_d_epp_response_size_bytes_sum')).toBe(0);
  });

  test('a streamed answer is charged until its last byte', async () => {
    const { answer } = await begin(bed.envoy.port, { body: chatBody('stream', { stream: true }) });
    expect(await running(bed)).toBe(1);
    lastEvent.go();
    answer.resume();
    await eventually('the charge is released', async () => (await running(bed)) === 0);
    expect(answer.complete).toBe(true);
  });
});

describe.skipIf(skipReason !== '')(`Envoy with the heads of answers only${skipReason}`, () => {
  let bed: TestBed<Backend>;
  beforeAll(async () => {
    bed = await startTestBed(await servers(), { configuration: 'envoy-answer-heads.yaml' });
  });
  afterAll(() => bed?.stop());

  test('a streamed answer is charged until its last byte and counted as ended', async () => {
    const before = await pickerMetric(bed.picker, 'llm_d_epp_request_duration_seconds_count');
    const { answer } = await begin(bed.envoy.port, { body: chatBody('stream', { stream: true }) });
    expect(await running(bed)).toBe(1);
    lastEvent.go();
    answer.resume();
    await eventually('the charge is released', async () => (await running(bed)) === 0);
    expect(answer.complete).toBe(true);
    expect(await pickerMetric(bed.picker, 'llm_d_epp_request_duration_seconds_count')).toBe(before + 1);
  });

  test('an answer whose client hangs up is charged no longer', async () => {
    const { request, answer } = await begin(bed.envoy.port, { body: chatBody('stream', { stream: true }) });
    answer.on('error', () => {});
    expect(await running(bed)).toBe(1);
    request.destroy();
    await eventually('the charge is released', async () => (await running(bed)) === 0);
    lastEvent.go();
  });
});

describe.skipIf(skipReason !== '')(`Envoy with the bodies of a share of answers${skipReason}`, () => {
  let bed: TestBed<Backend>;
  beforeAll(async () => {
    bed = await startTestBed(await servers(), { configuration: 'envoy-answer-share.yaml' });
  });
  afterAll(() => bed?.stop());

  /** Asks several times. @returns requests of which bytes of the answer came to the picker */
  async function read(requests: number): Promise<number> {
    const sum = () => pickerMetric(bed.picker, 'llm_d_epp_response_size_bytes_sum');
    const sizes: number[] = [];
    for (let request = 0; request < requests; request++) {
      const before = await sum();
      const answer = await ask(bed.envoy.port, { body: chatBody('anything') });
      expect(answer.status).toBe(200);
      await eventually('the charge is released', async () => (await running(bed)) === 0);
      sizes.push((await sum()) - before);
    }
    return sizes.filter((size) => size > 0).length;
  }

  test('the bodies of about one answer in ten come to the picker', async () => {
    const share = await read(100);
    expect(share).toBeGreaterThan(0);
    expect(share).toBeLessThan(40);
  });

  test('the share of answers follows its runtime key', async () => {
    const set = (percent: number) =>
      fetch(`http://127.0.0.1:${bed.envoy.adminPort}/runtime_modify?pointsman.answers_read=${percent}`, {
        method: 'POST',
      });
    await set(100);
    expect(await read(5)).toBe(5);
    await set(0);
    expect(await read(5)).toBe(0);
  });

  test('a streamed answer outside of the share is charged until its last byte', async () => {
    const { answer } = await begin(bed.envoy.port, { body: chatBody('stream', { stream: true }) });
    expect(await running(bed)).toBe(1);
    lastEvent.go();
    answer.resume();
    await eventually('the charge is released', async () => (await running(bed)) === 0);
    expect(answer.complete).toBe(true);
  });
});

const BUFFERED = {
  request_body_mode: 'BUFFERED',
  request_trailer_mode: 'SKIP',
  response_body_mode: 'BUFFERED',
  response_trailer_mode: 'SKIP',
};

describe.skipIf(skipReason !== '')(`Envoy with buffered bodies${skipReason}`, () => {
  let bed: TestBed<Backend>;
  beforeAll(async () => {
    bed = await startTestBed(await servers(), {
      startEnvoy: (port) => startEnvoyWithModes(BUFFERED, port),
    });
  });
  afterAll(() => bed?.stop());

  test('a buffered body is placed by its prompt and arrives to the byte', async () => {
    const body = chatBody('0123456789abcdef'.repeat(1_024));
    const first = await ask(bed.envoy.port, { body });
    await eventually('the charge is released', async () => (await running(bed)) === 0);
    const second = await ask(bed.envoy.port, { body });
    for (const answer of [first, second]) {
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.body.toString()).received).toBe(sha(body));
    }
    expect(second.headers['x-inference-pod']).toBe(first.headers['x-inference-pod']);
  });

  test('a buffered body has its model rewritten on the way up and back on the way down', async () => {
    const headers = { 'x-llm-d-model-name-rewrite': 'a-model-of-another-length' };
    const answer = await ask(bed.envoy.port, { body: chatBody('rewrite'), headers });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body.toString()).model).toBe('m');
    const received = bed.servers.flatMap((server) => server.received).at(-1)!;
    expect(bed.servers.flatMap((s) => s.received).some(({ body }) => body.includes('another-length'))).toBe(true);
    expect(received.headers['x-llm-d-model-name-rewrite']).toBeUndefined();
  });

  test('a buffered body that cannot be read is refused with its reason', async () => {
    const answer = await ask(bed.envoy.port, { body: Buffer.from('{') });
    expect(answer.status).toBe(400);
  });
});

describe.skipIf(skipReason !== '')(`Envoy with streamed bodies of requests${skipReason}`, () => {
  test('a streamed body is refused at once, with the mode that works', async () => {
    const modes = { ...BUFFERED, request_body_mode: 'STREAMED', response_body_mode: 'STREAMED' };
    const bed = await startTestBed(await servers(), { startEnvoy: (port) => startEnvoyWithModes(modes, port) });
    try {
      const answer = await ask(bed.envoy.port, { body: chatBody('anything') });
      expect(answer.status).toBe(500);
      expect(answer.body.toString()).toContain('set request_body_mode to FULL_DUPLEX_STREAMED or BUFFERED');
    } finally {
      await bed.stop();
    }
  });

  test('answers that come in pieces, each with a reply of its own, arrive whole', async () => {
    const modes = { ...BUFFERED, response_body_mode: 'STREAMED' };
    const bed = await startTestBed(await servers(), { startEnvoy: (port) => startEnvoyWithModes(modes, port) });
    try {
      lastEvent.go();
      const headers = { 'x-llm-d-model-name-rewrite': 'other' };
      const answer = await ask(bed.envoy.port, { body: chatBody('stream', { stream: true }), headers });
      const events = answer.body.toString();
      expect(events).toContain('[DONE]');
      expect(events).not.toContain('"other"');
      await eventually('the charge is released', async () => (await running(bed)) === 0);
    } finally {
      await bed.stop();
    }
  });
});

describe.skipIf(skipReason !== '')(`Envoy with all bodies${skipReason}`, () => {
  test('bodies of answers that no decision depends on are counted and logged once', async () => {
    const profile = sampleProfile('headers-only.yaml');
    const bed = await startTestBed(await servers(), { profile });
    try {
      for (let i = 0; i < 2; i++) await ask(bed.envoy.port, { body: chatBody('anything') });
      expect(await pickerMetric(bed.picker, 'pointsman_unread_answers_total')).toBe(2);
    } finally {
      await bed.stop();
    }
  });
});

/** Asks through an Envoy with these modes a picker that overrides them. @returns the phases that it was told of */
async function overriddenPhases(
  modes: Readonly<Record<string, string>>,
  override: Override,
): Promise<readonly number[]> {
  const [server] = await servers();
  const picker = await startOverridingPicker(`127.0.0.1:${server!.port}`, override);
  const envoy = await startEnvoyWithModes(modes, picker.port);
  try {
    lastEvent.go();
    const answer = await ask(envoy.port, { body: chatBody('stream', { stream: true }) });
    expect(answer.status).toBe(200);
    expect(answer.body.toString()).toContain('[DONE]');
    return picker.phases;
  } finally {
    await envoy.stop();
    await picker.close();
    await server!.stop();
  }
}

describe.skipIf(skipReason !== '')(`mode_override${skipReason}`, () => {
  test('mode_override ends bodies of answers where no body is full-duplex', async () => {
    const modes = { request_body_mode: 'NONE', request_trailer_mode: 'SKIP', response_body_mode: 'STREAMED' };
    const phases = await overriddenPhases(modes, { phase: Phase.requestHeaders, mode: BodyMode.none });
    expect(phases).toContain(Phase.responseHeaders);
    expect(phases).not.toContain(Phase.responseBody);
  });

  test.each([
    ['requests', Phase.requestHeaders],
    ['answers', Phase.responseHeaders],
  ] as const)(
    'mode_override in the reply to heads of %s does not end full-duplex bodies of answers',
    async (_, phase) => {
      expect(await overriddenPhases({}, { phase, mode: BodyMode.none })).toContain(Phase.responseBody);
    },
  );

  test.each([
    ['requests', Phase.requestHeaders],
    ['answers', Phase.responseHeaders],
  ] as const)(
    'mode_override in the reply to heads of %s asks for no bodies of answers beside full-duplex requests',
    async (_, phase) => {
      const modes = { response_body_mode: 'NONE' };
      const phases = await overriddenPhases(modes, { phase, mode: BodyMode.streamed });
      expect(phases).toContain(Phase.requestBody);
      expect(phases).not.toContain(Phase.responseBody);
    },
  );
});

/** `ProcessingMode.BodySendMode` */
const BodyMode = { none: 0, streamed: 1 } as const;

/** What a picker overrides, and in the reply to what. */
interface Override {
  readonly phase: typeof Phase.requestHeaders | typeof Phase.responseHeaders;
  /** Mode of the bodies of answers. */
  readonly mode: number;
}

/** `mode_override` of a ProcessingResponse: heads and trailers of answers SEND, their bodies as given. */
function modeOverride(mode: number): Buffer {
  return bytesField(9, numberField(1, 1), numberField(2, 1), numberField(4, mode), numberField(6, 1));
}

/** A picker that overrides the mode of the bodies of answers, and passes on what comes. */
async function startOverridingPicker(destination: string, { phase: overrides, mode }: Override) {
  const phases: number[] = [];
  const withOverride = (phase: number, reply: Buffer) =>
    phase === overrides ? Buffer.concat([reply, modeOverride(mode)]) : reply;
  const transport = await createTransport('lean');
  const held = { bytesMax: 1 << 20, take: () => true, force: () => true, give: () => {} };
  const open = (stream: ProcessStream): ProcessHandler => ({
    message(bytes, from, to) {
      const { phase, body, endOfStream } = decodeProcessRequest(bytes, from, to);
      phases.push(phase);
      if (phase === Phase.requestHeaders) {
        const reply = encodeRequestHeadersReply(
          [setHeader('x-gateway-destination-endpoint', destination)],
          NO_METADATA,
        );
        stream.send(withOverride(phase, reply));
      } else if (phase === Phase.requestBody)
        encodeBodyReplies(Reply.requestBody, [Buffer.from(body)], endOfStream, stream);
      else if (phase === Phase.responseHeaders) stream.send(withOverride(phase, encodeResponseHeadersReply([])));
      else if (phase === Phase.responseBody)
        encodeBodyReplies(Reply.responseBody, [Buffer.from(body)], endOfStream, stream);
      else stream.send(encodeTrailersReply(Reply.responseTrailers));
    },
    halfClosed: () => stream.end(),
    overflowed: () => {},
    stalled: () => {},
    closed: () => {},
  });
  const port = await transport.listen(
    {
      ...{ host: '127.0.0.1', port: 0, reusePort: false, maxReceiveBytes: 4_194_304, maxSendBytes: 4_194_304 },
      ...{ streamsMax: 100, stallMs: 60_000, budget: held },
    },
    open,
  );
  return { port, phases, close: () => transport.close() };
}

function sha(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
