import { hash, timingSafeEqual } from 'node:crypto';
import type { RequestLoad } from '../core/load-table.js';
import type { SessionState, SessionTold } from '../core/session-news.js';
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

/** A session as a whole, with the endpoint of its last turn. */
export interface ToldSession extends SessionState, TurnNews {}

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

/** Request of one replica to another for a full update, and for what is true of the following. */
export interface RequestBody {
  readonly kind: 'request';
  /** The prefix index. */
  readonly index: boolean;
  /** All sessions. */
  readonly sessions: boolean;
}

/** A piece of the sessions of a replica, for one that joins. */
export interface SessionsBody {
  readonly kind: 'sessions';
  /** As in an update. */
  readonly seedCheck: number;
  /** Whether no piece follows. */
  readonly last: boolean;
  /** Whether the sender was told those of its own peers before, or had none. */
  readonly joined: boolean;
  readonly sessions: readonly ToldSession[];
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
export type SessionsPiece = Envelope & SessionsBody;
export type MessageBody = UpdateBody | RequestBody | PieceBody | SessionsBody;
export type Message = Envelope & MessageBody;
/** A message that was read, with the latest version that its sender reads. */
export type ReadMessage = Message & { readonly reads: MessageVersion };
export type MessageVersion = typeof EARLIER_VERSION | typeof VERSION;

/** Raised when older messages would be misread, or their block hashes name other blocks. */
export const VERSION = 6;
/** Read as well, and written while a replica is heard that reads no later one: turns name nothing within them. */
export const EARLIER_VERSION = 5;
/** Flags of a message: it ends with a MAC; its sender reads VERSION, in whichever one it is written. */
const SIGNED = 1;
const READS_VERSION = 2;
/** Bytes of a MAC: HMAC-SHA-256, cut (RFC 2104, section 5). */
const MAC_BYTES = 16;
/** Bounds on the fields. Load: as the columns of the core hold it. Times: as `Date` holds them. */
const LOAD_MAX = 2 ** 31 - 1;
const TIME_MS_MAX = 8.64e15;
const COUNT_MAX = Number.MAX_SAFE_INTEGER;
/** Tokens of one turn: sums of them stay within 32 bits. */
const TURN_TOKENS_MAX = 2 ** 24;
/** As the fields of the core hold them. */
const AGE_MS_MAX = 2 ** 31 - 1;
const IDLE_MAX = 2 ** 16 - 1;
const PEER_MAX = 2 ** 31 - 1;

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

const KINDS = ['update', 'request', 'piece', 'sessions'] as const;
/** What a request asks for. */
const INDEX = 1;
const SESSIONS = 2;
/** What a piece of sessions is. */
const LAST_PIECE = 1;
const JOINED = 2;
const FULL = 1;
const LEAVES = 2;
const PARENT = 1;
const TAIL = 2;
/** What a turn has. */
const TURN_BEGINS = 1;
const TURN_BEFORE = 2;
const TURN_EARLY = 4;
const TURN_PREFIX = 8;
const TURN_NAMED = 16;
const TURN_WITHIN = 32;
/** What a session is beside. */
const SESSION_WAITS = 1;
const SESSION_LAPSED = 2;
const SESSION_FORGOTTEN = 4;
/** Least bytes of the parts of a message, to bound their number by the bytes that are there. */
const LOAD_BYTES = 16;
const PLACEMENT_BYTES = 10;
const EJECTION_BYTES = 9;
const SPENDING_BYTES = 9;
const TURN_BYTES = 19;
const SESSION_BYTES = TURN_BYTES + 4;

const LOAD_FIELDS = ['requests', 'tokens', 'prefill', 'prompt', 'output', 'pending', 'held', 'charged'] as const;

/** Bytes of a message. @param key with which it is signed; undefined = it is not */
export function encodeMessage(message: Message, key?: MessageKey, version: MessageVersion = VERSION): Uint8Array {
  const to = new WireWriter();
  to.byte(version);
  to.byte((key === undefined ? 0 : SIGNED) | READS_VERSION);
  to.byte(KINDS.indexOf(message.kind));
  to.text(message.replica);
  to.number(message.epoch);
  to.number(message.serial);
  to.float(message.sentAtMs);
  to.text(message.to);
  if (message.kind === 'update') writeUpdate(to, message, version);
  else if (message.kind === 'request') to.byte((message.index ? INDEX : 0) | (message.sessions ? SESSIONS : 0));
  else if (message.kind === 'sessions') writeSessions(to, message, version);
  else writePiece(to, message);
  if (key !== undefined) to.raw(macOf(key, to.written));
  return to.written.slice();
}

function writeUpdate(to: WireWriter, update: Update, version: MessageVersion): void {
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
  for (const turn of update.turns) writeTurn(to, turn, version);
  const { learned = new Uint8Array(0) } = update;
  to.number(learned.length);
  to.raw(learned);
}

function writeTurn(to: WireWriter, turn: TurnNews, version: MessageVersion): void {
  const { begins, endpoint, before, anchor, earlyAnchor, prefix, within, tokens, shared, withinTokens, named } = turn;
  const nests = within !== 0n && version !== EARLIER_VERSION;
  const flags =
    (begins ? TURN_BEGINS : 0) |
    (before === 0n ? 0 : TURN_BEFORE) |
    (earlyAnchor === 0n ? 0 : TURN_EARLY) |
    (prefix === 0n ? 0 : TURN_PREFIX) |
    (named ? TURN_NAMED : 0) |
    (nests ? TURN_WITHIN : 0);
  to.byte(flags);
  to.word(endpoint);
  to.word(anchor);
  if (before !== 0n) to.word(before);
  if (earlyAnchor !== 0n) to.word(earlyAnchor);
  if (prefix !== 0n) to.word(prefix);
  if (nests) to.word(within);
  to.number(tokens);
  to.number(shared);
  if (nests) to.number(withinTokens);
}

function writeSessions(to: WireWriter, piece: SessionsPiece, version: MessageVersion): void {
  const { seedCheck, last, joined, sessions } = piece;
  to.number(seedCheck);
  to.byte((last ? LAST_PIECE : 0) | (joined ? JOINED : 0));
  to.number(sessions.length);
  for (const session of sessions) {
    const { waits, lapsedAfter, forgotten } = session;
    writeTurn(to, session, version);
    to.byte(
      (waits ? SESSION_WAITS : 0) |
        (lapsedAfter === undefined ? 0 : SESSION_LAPSED) |
        (forgotten ? SESSION_FORGOTTEN : 0),
    );
    to.byte(session.turns);
    to.number(session.ageMs);
    to.number(session.peer);
    if (lapsedAfter !== undefined) to.number(lapsedAfter);
  }
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
export function decodeMessage(bytes: Uint8Array, key?: MessageKey): ReadMessage {
  const from = new WireReader(signedPart(bytes, key));
  const version = from.byte() === VERSION ? VERSION : EARLIER_VERSION;
  const reads = (from.byte() & READS_VERSION) === 0 ? version : VERSION;
  const kind = KINDS[from.byte()];
  if (kind === undefined) throw new WireError('a message of an unknown kind');
  const envelope: Envelope = {
    replica: from.text(),
    epoch: count(from, 'epoch', TIME_MS_MAX),
    serial: from.number(),
    sentAtMs: amount(from, 'sentAtMs', TIME_MS_MAX),
    to: from.text(),
  };
  const message = READERS[kind](from, envelope, version);
  if (from.left > 0) throw new WireError(`${from.left} bytes too many`);
  return { ...message, reads };
}

type Read = (from: WireReader, envelope: Envelope, version: MessageVersion) => Message;
const READERS: Readonly<Record<Message['kind'], Read>> = {
  update: readUpdate,
  request: readRequest,
  piece: readPiece,
  sessions: readSessions,
};

/** A message without its MAC. */
function signedPart(bytes: Uint8Array, key: MessageKey | undefined): Uint8Array {
  const from = new WireReader(bytes);
  const version = from.byte();
  if (version !== VERSION && version !== EARLIER_VERSION)
    throw new WireError(`version ${version} of the messages, and ${EARLIER_VERSION} or ${VERSION} is expected`);
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

function readUpdate(from: WireReader, envelope: Envelope, version: MessageVersion): Update {
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
    turns: list(from, TURN_BYTES, () => readTurn(from, version)),
    learned: readLearned(from),
  };
}

function readTurn(from: WireReader, version: MessageVersion): TurnNews {
  const flags = from.byte();
  const nests = version !== EARLIER_VERSION && (flags & TURN_WITHIN) !== 0;
  const [endpoint, anchor] = [from.word(), from.word()];
  const wordIf = (flag: number) => ((flags & flag) === 0 ? 0n : from.word());
  const [before, earlyAnchor, prefix] = [wordIf(TURN_BEFORE), wordIf(TURN_EARLY), wordIf(TURN_PREFIX)];
  const within = nests ? from.word() : 0n;
  const [tokens, shared] = [count(from, 'tokens', TURN_TOKENS_MAX), count(from, 'shared', TURN_TOKENS_MAX)];
  if (shared > tokens) throw new WireError(`shared is ${shared}, and the turn has ${tokens} tokens`, 'value');
  const withinTokens = nests ? count(from, 'withinTokens', TURN_TOKENS_MAX) : 0;
  if (nests && (within === 0n || withinTokens === 0 || withinTokens >= shared))
    throw new WireError(`withinTokens is ${withinTokens}, and the turn shares ${shared} tokens`, 'value');
  const [begins, named] = [(flags & TURN_BEGINS) !== 0, (flags & TURN_NAMED) !== 0];
  return { begins, endpoint, before, anchor, earlyAnchor, prefix, within, tokens, shared, withinTokens, named };
}

function readRequest(from: WireReader, envelope: Envelope): SnapshotRequest {
  const asked = from.byte();
  return { kind: 'request', ...envelope, index: (asked & INDEX) !== 0, sessions: (asked & SESSIONS) !== 0 };
}

function readSessions(from: WireReader, envelope: Envelope, version: MessageVersion): SessionsPiece {
  const [seedCheck, is] = [from.number(), from.byte()];
  const [last, joined] = [(is & LAST_PIECE) !== 0, (is & JOINED) !== 0];
  const sessions = list(from, SESSION_BYTES, () => readSession(from, version));
  return { kind: 'sessions', ...envelope, seedCheck, last, joined, sessions };
}

function readSession(from: WireReader, version: MessageVersion): ToldSession {
  const turn = readTurn(from, version);
  const [is, turns] = [from.byte(), from.byte()];
  const [ageMs, peer] = [count(from, 'ageMs', AGE_MS_MAX), count(from, 'peer', PEER_MAX)];
  return {
    ...turn,
    turns,
    ageMs,
    peer,
    waits: (is & SESSION_WAITS) !== 0,
    lapsedAfter: (is & SESSION_LAPSED) === 0 ? undefined : count(from, 'lapsedAfter', IDLE_MAX),
    forgotten: (is & SESSION_FORGOTTEN) !== 0,
  };
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
