import {
  block,
  END_HEADERS,
  END_STREAM,
  frame,
  message,
  PADDED,
  PREFACE,
  PRIORITY_FLAG,
  requestFields,
  settings,
  u32,
  windowUpdate,
} from './frames.ts';

/** Uniform numbers from a seed (mulberry32). */
export function generator(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

export interface Script {
  readonly bytes: Buffer;
  readonly frames: number;
  /** Some of its frames are not allowed. */
  readonly flawed: boolean;
  /** Where the bytes are cut on their way. */
  readonly cuts: readonly number[];
}

interface OpenStream {
  readonly id: number;
  /** Data of messages that have been begun. */
  pending: Buffer;
}

/** Steps of a script unless said otherwise. */
const STEPS_MAX = 40;

/**
 * A conversation of a client: streams with messages in any pieces, padding, priorities, settings, window updates,
 * resets, unknown frames, all of it allowed. With `flaws` some of its frames are changed so that most are not.
 */
export function randomScript(seed: number, flaws: boolean, stepsMax = STEPS_MAX): Script {
  const random = generator(seed);
  const frames: Buffer[] = [settings(random(2) === 0 ? {} : { 4: 1_000 + random(100_000) })];
  const streams: OpenStream[] = [];
  let next = 1;
  const steps = 3 + random(stepsMax);
  for (let i = 0; i < steps; i++) {
    const kind = random(20);
    if (kind < 4 && streams.length < 20) {
      streams.push({ id: next, pending: Buffer.alloc(0) });
      frames.push(...headerFrames(random, next));
      next += 2 * (1 + random(3));
    } else if (kind < 13 && streams.length > 0) frames.push(dataFrame(random, streams));
    else if (kind < 15 && streams.length > 0) frames.push(...endFrames(random, streams));
    else frames.push(otherFrame(random, streams));
  }
  if (flaws) for (let i = 0; i <= random(3); i++) changeFrame(random, frames);
  const bytes = Buffer.concat([PREFACE, ...frames]);
  const cuts =
    random(2) === 0 ? [] : Array.from({ length: random(8) }, () => random(bytes.length)).sort((a, b) => a - b);
  return { bytes, frames: frames.length, flawed: flaws, cuts };
}

type Random = (below: number) => number;

function headerFrames(random: Random, id: number): Buffer[] {
  const more = random(3) === 0 ? ([['x-more', 'v'.repeat(random(300))]] as const) : [];
  const content = block(requestFields(more));
  const priority = random(4) === 0 ? PRIORITY_FLAG : 0;
  const front = priority === 0 ? Buffer.alloc(0) : Buffer.concat([u32(0), Buffer.from([random(256)])]);
  if (random(3) > 0) return [frame('HEADERS', END_HEADERS | priority, id, front, content)];
  const cut = random(content.length);
  return [
    frame('HEADERS', priority, id, front, content.subarray(0, cut)),
    frame('CONTINUATION', END_HEADERS, id, content.subarray(cut)),
  ];
}

/** Some data of a stream: a piece of its messages, which begin with the stream's number. */
function dataFrame(random: Random, streams: OpenStream[]): Buffer {
  const stream = streams[random(streams.length)]!;
  if (stream.pending.length === 0) {
    const sizes = [0, 10, 100, 5_000, 30_000];
    const content = `${stream.id} ${'x'.repeat(random(1 + sizes[random(sizes.length)]!))}`;
    stream.pending = message(content);
  }
  const take = random(3) === 0 ? random(stream.pending.length + 1) : stream.pending.length;
  const piece = stream.pending.subarray(0, Math.min(take, 16_000));
  stream.pending = stream.pending.subarray(piece.length);
  if (random(4) > 0) return frame('DATA', 0, stream.id, piece);
  const pad = random(200);
  return frame('DATA', PADDED, stream.id, Buffer.from([pad]), piece, Buffer.alloc(pad));
}

/** The end of a stream: of its data, by trailers, or by a reset. A message that has been begun comes to its end. */
function endFrames(random: Random, streams: OpenStream[]): Buffer[] {
  const [stream] = streams.splice(random(streams.length), 1) as [OpenStream];
  if (random(4) === 0) return [frame('RST_STREAM', 0, stream.id, u32(random(14)))];
  const rest: Buffer[] = [];
  for (let at = 0; at < stream.pending.length; at += 16_000) {
    rest.push(frame('DATA', 0, stream.id, stream.pending.subarray(at, at + 16_000)));
  }
  if (random(4) === 0) return [...rest, frame('HEADERS', END_HEADERS | END_STREAM, stream.id, block([['x-end', 'y']]))];
  return [...rest, frame('DATA', END_STREAM, stream.id)];
}

function otherFrame(random: Random, streams: readonly OpenStream[]): Buffer {
  const id = streams[random(streams.length)]?.id;
  switch (random(7)) {
    case 0:
      // Without ACK: node:http2 ends a session that answers a PING it did not send.
      return frame('PING', 0, 0, Buffer.alloc(8, random(256)));
    case 1:
      return settings(random(2) === 0 ? { 4: random(200_000) } : { 1: random(10_000), 99: 7 });
    case 2:
      return windowUpdate(0, 1 + random(100_000));
    case 3:
      return id === undefined ? windowUpdate(0, 1) : windowUpdate(id, 1 + random(100_000));
    case 4:
      return frame('PRIORITY', 0, 2 * random(1_000) + 1, u32(2_002 + random(1_000)), Buffer.from([random(256)]));
    case 5:
      return frame(32 + random(200), random(256), id ?? 0, Buffer.alloc(random(100), random(256)));
    default:
      return id === undefined ? settings() : frame('DATA', 0, id);
  }
}

/** Changes one frame. */
function changeFrame(random: Random, frames: Buffer[]): void {
  const i = 1 + random(frames.length);
  const victim = frames[i];
  if (victim === undefined) return;
  // What a header block says is read apart (hpack.test.ts): the two sides serve different paths and types of content.
  const isHeaders = victim[3] === 1 || victim[3] === 9;
  switch (isHeaders ? 2 + random(3) : random(6)) {
    case 0: // another bit in the frame header, but not in its length
      victim[3 + random(6)]! ^= 1 << random(8);
      return;
    case 1: // another byte of the payload
      if (victim.length > 9) victim[9 + random(victim.length - 9)] = random(256);
      return;
    case 2: // twice
      frames.splice(i, 0, victim);
      return;
    case 3: // not at all
      frames.splice(i, 1);
      return;
    case 4: {
      // in another place
      frames.splice(i, 1);
      frames.splice(1 + random(frames.length), 0, victim);
      return;
    }
    default: // one byte shorter, and its length with it
      if (victim.length <= 9) return;
      frames[i] = Buffer.from(victim.subarray(0, -1));
      frames[i]!.writeUIntBE(victim.length - 10, 0, 3);
  }
}
