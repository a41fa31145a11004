/**
 * One whole ext_proc exchange in-process: decoding, the stream machine and the replies, without sockets. Scanner,
 * scheduler and recorder answer from memory, so the figure is the protocol's own share of a request.
 */

import { decodeProcessRequest } from '../dist/src/ingress/codec/process-request.js';
import { createStreamOpener, type StreamOpener } from '../dist/src/ingress/opener.js';
import { UnreadAnswers, unusableModes } from '../dist/src/ingress/processing-modes.js';
import type { ProcessStream } from '../dist/src/ingress/transport.js';
import { createDialects, DEFAULT_PARSERS } from '../dist/src/request/dialects.js';
import { leftOutHints } from '../dist/src/request/engine-asks.js';
import { RequestRules } from '../dist/src/request/rules.js';
import type { RequestRecorder } from '../dist/src/response/recorder.js';
import type { Charge, Placement } from '../dist/src/scheduling/decision.js';
import { requestBody, requestHeaders, responseBody, responseHeaders } from '../test/ingress/envoy-messages.ts';
import { BOUNDS, DECIDE, OBSERVE } from '../test/serve/default-sections.ts';

export interface Bench {
  readonly name: string;
  setup(): Promise<{ run: () => void }>;
}

/** Headers of a chat request as Envoy sends them on. @param bodyBytes length of its body */
export function chatHeaders(bodyBytes: number): Record<string, string> {
  return {
    ':method': 'POST',
    ':path': '/v1/chat/completions',
    ':authority': 'models.example.com',
    ':scheme': 'https',
    'content-type': 'application/json',
    'content-length': String(bodyBytes),
    'user-agent': 'bench/1.0',
    authorization: `Bearer ${'k'.repeat(40)}`,
    accept: '*/*',
    'x-request-id': '7f6c0f4e-8e3a-4d0c-9d29-4d2a5b7c1d10',
    'x-forwarded-for': '10.1.2.3',
  };
}

/** Twelve headers, 4 KB of chat in two body messages, an answer of one chunk. */
export function exchange(): readonly Buffer[] {
  const body = Buffer.from(
    JSON.stringify({ model: 'llama', messages: [{ role: 'user', content: 'x'.repeat(4_000) }], max_tokens: 100 }),
  );
  const headers = { ...chatHeaders(body.length), 'x-llm-d-inference-fairness-id': 'team-a' };
  return [
    requestHeaders(headers),
    requestBody(body.subarray(0, 2_048), false),
    requestBody(body.subarray(2_048)),
    responseHeaders({ ':status': '200', 'content-type': 'application/json' }),
    responseBody(Buffer.alloc(200, 'y'), true),
  ];
}

const nothing = (): void => undefined;

const QUIET: RequestRecorder = {
  series: () => 0,
  routed: nothing,
  failed: nothing,
  running: nothing,
  tokens: nothing,
  estimatedTokens: nothing,
  firstToken: nothing,
  interTokenLatency: nothing,
  responseEnded: nothing,
  predicted: nothing,
  predictionAsked: nothing,
  scheduled: nothing,
  prefix: nothing,
  processing: nothing,
  rewritten: nothing,
  queued: nothing,
  leftWaiting: nothing,
  queueLeft: nothing,
  passedQueue: nothing,
  streamOpened: nothing,
  streamClosed: nothing,
  tokenised: () => undefined,
  tokensCounted: () => undefined,
  estimateCompared: () => undefined,
  overloaded: nothing,
  unreadAnswer: nothing,
  retentionLeftOut: nothing,
};

const CHARGE: Charge = { prefillDone: nothing, grow: nothing, release: nothing, outcome: nothing, servedBy: nothing };

function placements(): readonly Placement[] {
  return Array.from({ length: 64 }, (_, slot) => {
    const address = `10.0.0.${slot}`;
    const endpoint = { id: `default/${slot}`, name: `${slot}`, namespace: 'default', address, port: 8_000, labels: {} };
    return {
      kind: 'placed',
      endpoints: [{ slot, address: `${address}:8000`, endpoint }],
      picks: new Map(),
      charge: CHARGE,
      headers: new Map(),
      matchedBlocks: 0,
      totalBlocks: 16,
      promptTokens: 64,
      matchedTokens: 0,
      scores: undefined,
    };
  });
}

const SCAN_RESULT = {
  model: 'llama',
  modelRange: { start: 9, end: 16 },
  stream: false,
  maxOutputTokens: 100,
  promptRange: { start: 20, end: 4_050 },
  promptBytes: 4_030,
  toolsRange: undefined,
  templateRange: undefined,
  cacheSalt: undefined,
  media: [],
  hasMedia: false,
  isObject: true,
  flaw: undefined,
};
const USAGE = { promptTokens: 1_000, completionTokens: 20, totalTokens: 1_020, cachedTokens: -1 };

/**
 * Streams whose scanner, scheduler and recorder answer from memory.
 * @param now clock of the turn budget; standing still lets all work run where there is no event loop to share
 */
export function quietOpener(now: () => number): StreamOpener {
  const endpoints = placements();
  let turn = 0;
  return createStreamOpener({
    scanner: {
      open: () => 0,
      feed: () => true,
      finish: () => true,
      result: () => SCAN_RESULT,
      refusal: () => undefined,
      close: nothing,
    },
    responses: { open: () => 0, feed: (_id, chunk) => chunk, usage: () => USAGE, events: () => 0, close: nothing },
    scheduler: { schedule: () => endpoints[turn++ % endpoints.length]! },
    settings: {
      current: { dialects: createDialects(DEFAULT_PARSERS), evicts: false, reserves: false, readsAnswers: true },
    },
    unreadAnswers: new UnreadAnswers(QUIET, { warn: nothing }),
    unusableModes: unusableModes({ warn: nothing }),
    leftOutHints: leftOutHints({ warn: nothing }),
    rules: new RequestRules(),
    admission: { admit: () => 'admitted' },
    recorder: QUIET,
    bounds: { ...BOUNDS, maxBufferedBytes: 1e9 },
    decide: DECIDE,
    observe: OBSERVE,
    blockBytes: () => 256,
    now,
    recent: now,
    random: Math.random,
    log: { error: nothing, warn: nothing },
  });
}

async function streamBench(): Promise<{ run: () => void }> {
  const open = quietOpener(() => 0);
  const messages = exchange();
  let sent = 0;
  const stream: ProcessStream = {
    send: (reply) => {
      sent += reply.length;
    },
    sendParts: (head, parts) => {
      sent += head.length;
      for (const part of parts) sent += part.length;
    },
    end: nothing,
    fail: (code, message) => {
      throw new Error(`stream failed with ${code}: ${message}`);
    },
    pendingBytes: 0,
    room: Number.POSITIVE_INFINITY,
    arrivedAt: 0,
  };
  return {
    run: () => {
      const handler = open(stream);
      for (const message of messages) handler.message(message, 0, message.length);
      handler.halfClosed();
      handler.closed(false);
      if (sent === 0) throw new Error('nothing was answered');
    },
  };
}

async function decodeBench(): Promise<{ run: () => void }> {
  const messages = exchange();
  return {
    run: () => {
      for (const message of messages) decodeProcessRequest(message);
    },
  };
}

export const benches: readonly Bench[] = [
  { name: 'stream/chat-4k', setup: streamBench },
  { name: 'stream/decode', setup: decodeBench },
];
