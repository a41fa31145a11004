// What Envoys of several versions sent on their ext_proc connections (`npm run capture-envoy`), replayed.
import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeProcessRequest, Phase } from '../../../dist/src/ingress/codec/process-request.js';
import { compare, leanPeer, nodePeer, type Peer } from './differential.ts';
import { PREFACE, parseFrames } from './frames.ts';
import { MemoryConnection, messagesOf, type RecordingHandler } from './memory-connection.ts';
import { generator, type Script } from './script-generator.ts';

const FOLDER = new URL('captures/', import.meta.url);
const CAPTURES = readdirSync(FOLDER).filter((name) => name.endsWith('.gz'));
/** Places where the bytes of a capture are cut, and how often they are drawn. */
const CUTS = 12;
const DRAWS = 3;
/** Bytes that are replayed one at a time; of longer captures the rest comes in one piece. */
const SINGLE_BYTES_MAX = 80_000;

function capture(name: string): Buffer {
  return gunzipSync(readFileSync(new URL(name, FOLDER)));
}

/** The capture cut at random. */
function script(bytes: Buffer, seed: number): Script {
  const random = generator(seed);
  const frames = parseFrames(bytes.subarray(PREFACE.length)).length;
  const cuts = Array.from({ length: CUTS }, () => random(bytes.length)).sort((a, b) => a - b);
  return { bytes, frames, flawed: false, cuts };
}

/** What the handlers of a connection heard, and what they answered: each message back. */
function replay(pieces: Iterable<Buffer>) {
  const connection = new MemoryConnection();
  connection.prepare = echo;
  for (const piece of pieces) connection.say(piece);
  const frames = connection.heard();
  return {
    events: connection.handlers.map(({ events }) => events),
    replies: connection.handlers.map((_, order) => messagesOf(frames, 2 * order + 1)),
    resets: frames.filter(({ type }) => type === 'RST_STREAM').map(({ stream, payload }) => [stream, payload]),
    open: connection.connection.streamCount,
    closed: connection.ended,
  };
}

function echo(handler: RecordingHandler): void {
  handler.onMessage = (text) => handler.stream.send(Buffer.from(text, 'latin1'));
  handler.onHalfClosed = () => handler.stream.end();
}

function* single(bytes: Buffer): Generator<Buffer> {
  const most = Math.min(bytes.length, SINGLE_BYTES_MAX);
  for (let at = 0; at < most; at++) yield bytes.subarray(at, at + 1);
  if (most < bytes.length) yield bytes.subarray(most);
}

/** Bytes of the request bodies in the messages of a stream. */
function bodyBytes(events: RecordingHandler['events']): number {
  let sum = 0;
  for (const [kind, text] of events) {
    if (kind !== 'message') continue;
    const bytes = Buffer.from(text, 'latin1');
    const { phase, body } = decodeProcessRequest(bytes, 0, bytes.length);
    if (phase === Phase.requestBody) sum += body.length;
  }
  return sum;
}

describe('captures of Envoy', () => {
  let lean: Peer;
  let node: Peer;
  beforeAll(async () => {
    [lean, node] = await Promise.all([leanPeer('order'), nodePeer('order')]);
  });
  afterAll(async () => {
    await Promise.all([lean.close(), node.close()]);
  });

  it.each(CAPTURES)(
    'the lean transport and node:http2 hear and answer the same in %s',
    async (name) => {
      const bytes = capture(name);
      for (let seed = 1; seed <= DRAWS; seed++) expect(await compare(lean, node, script(bytes, seed))).toBe(undefined);
    },
    30_000,
  );

  it.each(CAPTURES)('%s is heard and answered byte by byte as in one piece', (name) => {
    const bytes = capture(name);
    const whole = replay([bytes]);
    expect(replay(single(bytes))).toEqual(whole);
    expect(whole.events.length).toBeGreaterThan(0);
    expect(whole.closed).toBe(false);
  });

  it('the bodies of 400 KB are in the captures', () => {
    const large = CAPTURES.filter((name) => name.includes('body-of-400-kb'));
    expect(large.length).toBeGreaterThan(0);
    for (const name of large) expect(bodyBytes(replay([capture(name)]).events[0]!)).toBeGreaterThan(400_000);
  });
});
