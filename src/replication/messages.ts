import { hash, timingSafeEqual } from 'node:crypto';
import type { RequestLoad } from '../core/load-table.js';
import type { SessionTold } from '../core/session-news.js';
import { WireError, WireReader, WireWriter } from './wire.js';

/** Sender, receiver and time of a message. */
export interface Envelope {
  /** Name of the sender, unique in the group. */
  readonly replica: string;
  /** Start of the sender's process, in milliseconds since 1970; tells its processes apart. */
  readonly epoch: number;
  /** Counts the messages of an epoch, whichever peers they go to. */
  readonly serial: number;
  /** Time of sending by the sender's clock, in milliseconds since 1970. */
  readonly sentAtMs: number;
  /** Name of the receiver; the empty text = all. */
  readonly to: string;
}

/** Whole load of one replica on an endpoint. A later row replaces it, so nothing is counted twice. */
export interface LoadRow extends RequestLoad {
  /** endpointKey */
  readonly endpoint: bigint;
  /** Requests sent there since the start of the epoch. */
  readonly charged: number;
}

/** A prompt that was sent to an endpoint, with the blocks that are new there. */
export interface Placement {
  readonly endpoint: bigint;
  /** Chain hash of the block before; undefined = the hashes begin the prompt. */
  readonly parent: bigint | undefined;
  readonly hashes: BigUint64Array;
  readonly tail: bigint | undefined;
}

/** Ejection of an endpoint, or its end. */
export interface EjectionNews {
  readonly endpoint: bigint;
  readonly out: boolean;
}

/** Tokens that a tenant has used at a replica since the start of its epoch. */
export interface Spending {
  readonly tenant: string;
  readonly tokens: number;
}

/** A turn of a session that begins or ends on an endpoint. */
export interface TurnNews extends SessionTold {
  readonly endpoint: bigint;
}

/** Update of a replica about itself. */
export interface UpdateBody {
  readonly kind: 'update';
  /** Counts the updates of an epoch, from 1. */
  readonly sequence: number;
  /** Tells seeds of block hashes apart; hashes of another seed mean nothing. */
  readonly seedCheck: number;
  /** Whether endpoints without a row have no load of the replica. */
  readonly full: boolean;
  /** Whether the replica ends; its load no longer counts then. */
  readonly leaves: boolean;
  readonly loads: readonly LoadRow[];
  readonly placements: readonly Placement[];
  readonly ejections: readonly EjectionNews[];
  readonly spendings: readonly Spending[];
  /** Turns of sessions in their order. */
  readonly turns: readonly TurnNews[];
  /** Learned state of the adaptation, as JSON; undefined = not in this update. */
  readonly learned: Uint8Array | undefined;
}

/** Request of one replica to another for a full update and, with `index`, for the prefix index. */
export interface RequestBody {
  readonly kind: 'request';
  readonly index: boolean;
}

/** A part of the prefix index, as it was at the update of the same sequence or later. */
export interface PieceBody {
  readonly kind: 'piece';
  /** Number of the update. */
  readonly sequence: number;
  /** Counts the pieces of one answer, from 0. */
  readonly number: number;
  readonly last: boolean;
  /** Endpoints by the numbers that the segments use. */
  readonly endpoints: readonly bigint[];
  /** encodeSegments */
  readonly segments: Uint8Array;
}

export type Update = Envelope & UpdateBody;
export type SnapshotRequest = Envelope & RequestBody;
export type IndexPiece = Envelope & PieceBody;
export type MessageBody = UpdateBody | RequestBody | PieceBody;
export type Message = Envelope & MessageBody;

/** Raised when older messages would be misread, or their block hashes name other blocks. */
const VERSION = 4;
/** Flag of a message that ends with a MAC. */
const SIGNED = 1;
/** Bytes of a MAC: HMAC-SHA-256, cut (RFC 2104, section 5). */
const MAC_BYTES = 16;
/** Bounds on the fields. Load: as the columns of the core hold it. Times: as `Date` holds them. */
const LOAD_MAX = 2 ** 31 - 1;
const TIME_MS_MAX = 8.64e15;
const COUNT_MAX = Number.MAX_SAFE_INTEGER;
/** Tokens of one turn: sums of them stay within 32 bits. */
const TURN_TOKENS_MAX = 2 ** 24;

/** Bytes of a block of SHA-256. */
const BLOCK_BYTES = 64;

/**
 * Key with which the replicas of a group sign their messages: its two forms, as HMAC has them (RFC 2104, section 2).
 */
export interface MessageKey {
  readonly inner: Buffer;
  readonly outer: Buffer;
}

/** The key that the replicas of a group make of their secret; undefined without one: messages are not signed then. */
export function messageKey(group: string, secret: string): MessageKey | undefined {
  if (secret === '') return undefined;
  const key = hash('sha256', `pointsman messages of replicas\0${group}\0${secret}`, 'buffer');
  const padded = (pad: number) => Buffer.alloc(BLOCK_BYTES, pad).map((byte, i) => byte ^ (key[i] ?? 0)) as Buffer;
  return { inner: padded(0x36), outer: padded(0x5c) };
}

/** HMAC-SHA-256, cut. Made by hand, because Node's own takes 15 µs more for its object. */
function macOf({ inner, outer }: MessageKey, bytes: Uint8Array): Buffer {
  const digest = hash('sha256', Buffer.concat([inner, bytes]), 'buffer');
  return hash('sha256', Buffer.concat([outer, digest]), 'buffer').subarray(0, MAC_BYTES);
}

const KINDS = ['update', 'request', 'piece'] as const;
const FULL = 1;
const LEAVES = 2;
const PARENT = 1;
const TAIL = 2;
/** What a turn has. */
const TURN_BEGINS = 1;
const TURN_BEFORE = 2;
const TURN_EARLY = 4;
const TURN_PREFIX = 8;
/** Least bytes of the parts of a message, to bound their number by the bytes that are there. */
const LOAD_BYTES = 16;
const PLACEMENT_BYTES = 10;
const EJECTION_BYTES = 9;
const SPENDING_BYTES = 9;
const TURN_BYTES = 19;

const LOAD_FIELDS = ['requests', 'tokens', 'prefill', 'prompt', 'output', 'pending', 'held', 'charged'] as const;

/** Bytes of a message. @param key with which it is signed; undefined = it is not */
export function encodeMessage(message: Message, key?: MessageKey): Uint8Array {
  const to = new WireWriter();
  to.byte(VERSION);
  to.byte(key === undefined ? 0 : SIGNED);
  to.byte(KINDS.indexOf(message.kind));
  to.text(message.replica);
  to.number(message.epoch);
  to.number(message.serial);
  to.float(message.sentAtMs);
  to.text(message.to);
  if (message.kind === 'update') writeUpdate(to, message);
  else if (message.kind === 'request') to.byte(Number(message.index));
  else writePiece(to, message);
  if (key !== undefined) to.raw(macOf(key, to.written));
  return to.written.slice();
}

function writeUpdate(to: WireWriter, update: Update): void {
  to.number(update.sequence);
  to.number(update.seedCheck);
  to.byte((update.full ? FULL : 0) | (update.leaves ? LEAVES : 0));
  to.number(update.loads.length);
  for (const row of update.loads) {
    to.word(row.endpoint);
    for (const field of LOAD_FIELDS) to.number(row[field]);
  }
  to.number(update.placements.length);
  for (const placement of update.placements) writePlacement(to, placement);
  to.number(update.ejections.length);
  for (const { endpoint, out } of update.ejections) {
    to.word(endpoint);
    to.byte(Number(out));
  }
  to.number(update.spendings.length);
  for (const { tenant, tokens } of update.spendings) {
    to.text(tenant);
    to.float(tokens);
  }
  to.number(update.turns.length);
  for (const turn of update.turns) writeTurn(to, turn);
  const { learned = new Uint8Array(0) } = update;
  to.number(learned.length);
  to.raw(learned);
}

function writeTurn(to: WireWriter, turn: TurnNews): void {
  const { begins, endpoint, before, anchor, earlyAnchor, prefix, tokens, shared } = turn;
  const flags =
    (begins ? TURN_BEGINS : 0) |
    (before === 0n ? 0 : TURN_BEFORE) |
    (earlyAnchor === 0n ? 0 : TURN_EARLY) |
    (prefix === 0n ? 0 : TURN_PREFIX);
  to.byte(flags);
  to.word(endpoint);
  to.word(anchor);
  if (before !== 0n) to.word(before);
  if (earlyAnchor !== 0n) to.word(earlyAnchor);
  if (prefix !== 0n) to.word(prefix);
  to.number(tokens);
  to.number(shared);
}

function writePlacement(to: WireWriter, { endpoint, parent, hashes, tail }: Placement): void {
  to.word(endpoint);
  to.byte((parent === undefined ? 0 : PARENT) | (tail === undefined ? 0 : TAIL));
  to.number(hashes.length);
  if (parent !== undefined) to.word(parent);
  to.words(hashes);
  if (tail !== undefined) to.word(tail);
}

function writePiece(to: WireWriter, { sequence, number, last, endpoints, segments }: IndexPiece): void {
  to.number(sequence);
  to.number(number);
  to.byte(Number(last));
  to.number(endpoints.length);
  for (const endpoint of endpoints) to.word(endpoint);
  to.number(segments.length);
  to.raw(segments);
}

/**
 * Reads a message.
 * @param key with which it must be signed; undefined = signatures are not looked at
 * @throws WireError for another version or signature, or an impossible value
 */
export function decodeMessage(bytes: Uint8Array, key?: MessageKey): Message {
  const from = new WireReader(signedPart(bytes, key));
  from.raw(2);
  const kind = KINDS[from.byte()];
  if (kind === undefined) throw new WireError('a message of an unknown kind');
  const envelope: Envelope = {
    replica: from.text(),
    epoch: count(from, 'epoch', TIME_MS_MAX),
    serial: from.number(),
    sentAtMs: amount(from, 'sentAtMs', TIME_MS_MAX),
    to: from.text(),
  };
  const message =
    kind === 'update'
      ? readUpdate(from, envelope)
      : kind === 'request'
        ? ({ kind, ...envelope, index: from.byte() !== 0 } as const)
        : readPiece(from, envelope);
  if (from.left > 0) throw new WireError(`${from.left} bytes too many`);
  return message;
}

/** A message without its MAC. */
function signedPart(bytes: Uint8Array, key: MessageKey | undefined): Uint8Array {
  const from = new WireReader(bytes);
  const version = from.byte();
  if (version !== VERSION) throw new WireError(`version ${version} of the messages, and ${VERSION} is expected`);
  const isSigned = (from.byte() & SIGNED) !== 0;
  const end = isSigned ? bytes.length - MAC_BYTES : bytes.length;
  if (end < 2) throw new WireError('the message is too short for its signature');
  const part = bytes.subarray(0, end);
  if (key === undefined) return part;
  if (!isSigned) throw new WireError('it is not signed: give all replicas the same hashKeyFile', 'signature');
  if (!timingSafeEqual(macOf(key, part), bytes.subarray(end)))
    throw new WireError('it is signed with another key: give all replicas the same hashKeyFile and group', 'signature');
  return part;
}

/** A whole number in its bounds. */
function count(from: WireReader, name: string, max: number): number {
  const value = from.number();
  if (value > max) throw new WireError(`${name} is ${value}, and at most ${max} is possible`, 'value');
  return value;
}

/** A number in its bounds, of which NaN is none. */
function amount(from: WireReader, name: string, max: number): number {
  const value = from.float();
  if (!(value >= 0 && value <= max)) throw new WireError(`${name} is ${value}, and must be from 0 to ${max}`, 'value');
  return value;
}

function readUpdate(from: WireReader, envelope: Envelope): Update {
  const [sequence, seedCheck, flags] = [from.number(), from.number(), from.byte()];
  return {
    kind: 'update',
    ...envelope,
    sequence,
    seedCheck,
    full: (flags & FULL) !== 0,
    leaves: (flags & LEAVES) !== 0,
    loads: list(from, LOAD_BYTES, () => readLoad(from)),
    placements: list(from, PLACEMENT_BYTES, () => readPlacement(from)),
    ejections: list(from, EJECTION_BYTES, () => ({ endpoint: from.word(), out: from.byte() !== 0 })),
    spendings: list(from, SPENDING_BYTES, () => ({ tenant: from.text(), tokens: amount(from, 'tokens', COUNT_MAX) })),
    turns: list(from, TURN_BYTES, () => readTurn(from)),
    learned: readLearned(from),
  };
}

function readTurn(from: WireReader): TurnNews {
  const flags = from.byte();
  const [endpoint, anchor] = [from.word(), from.word()];
  const wordIf = (flag: number) => ((flags & flag) === 0 ? 0n : from.word());
  const [before, earlyAnchor, prefix] = [wordIf(TURN_BEFORE), wordIf(TURN_EARLY), wordIf(TURN_PREFIX)];
  const [tokens, shared] = [count(from, 'tokens', TURN_TOKENS_MAX), count(from, 'shared', TURN_TOKENS_MAX)];
  if (shared > tokens) throw new WireError(`shared is ${shared}, and the turn has ${tokens} tokens`, 'value');
  return { begins: (flags & TURN_BEGINS) !== 0, endpoint, before, anchor, earlyAnchor, prefix, tokens, shared };
}

function readLearned(from: WireReader): Uint8Array | undefined {
  const length = from.count(1);
  return length === 0 ? undefined : from.raw(length).slice();
}

function list<Part>(from: WireReader, bytes: number, read: () => Part): Part[] {
  return Array.from({ length: from.count(bytes) }, read);
}

function readLoad(from: WireReader): LoadRow {
  // In the order of LOAD_FIELDS.
  return {
    endpoint: from.word(),
    requests: count(from, 'requests', LOAD_MAX),
    tokens: count(from, 'tokens', LOAD_MAX),
    prefill: count(from, 'prefill', LOAD_MAX),
    prompt: count(from, 'prompt', LOAD_MAX),
    output: count(from, 'output', LOAD_MAX),
    pending: count(from, 'pending', LOAD_MAX),
    held: count(from, 'held', LOAD_MAX),
    charged: count(from, 'charged', COUNT_MAX),
  };
}

function readPlacement(from: WireReader): Placement {
  const endpoint = from.word();
  const flags = from.byte();
  const length = from.count(8);
  const parent = (flags & PARENT) === 0 ? undefined : from.word();
  const hashes = from.words(length);
  return { endpoint, parent, hashes, tail: (flags & TAIL) === 0 ? undefined : from.word() };
}

function readPiece(from: WireReader, envelope: Envelope): IndexPiece {
  const [sequence, number, last] = [from.number(), from.number(), from.byte() !== 0];
  const endpoints = list(from, 8, () => from.word());
  return { kind: 'piece', ...envelope, sequence, number, last, endpoints, segments: from.raw(from.count(1)).slice() };
}
