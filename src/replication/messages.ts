import type { RequestLoad } from '../core/load-table.js';
import { WireError, WireReader, WireWriter } from './wire.js';

/** Position of a message among all of its sender. */
export interface Origin {
  /** Name of the replica, unique in the group. */
  readonly replica: string;
  /** Start of the replica's process, in milliseconds since 1970. Messages of a later process replace those of an earlier one. */
  readonly epoch: number;
  /** Counts the updates of an epoch, from 1. */
  readonly sequence: number;
}

/** Whole load of one replica on an endpoint. A later row replaces it, so nothing is counted twice. */
export interface LoadRow extends RequestLoad {
  /** endpointKey */
  readonly endpoint: bigint;
  /** Requests sent there since the start of the epoch. */
  readonly charged: number;
}

/** A prompt that was sent to an endpoint, as far as it is new there. */
export interface Placement {
  readonly endpoint: bigint;
  /** Chain hash of the block before; undefined = the hashes begin the prompt. */
  readonly parent: bigint | undefined;
  readonly hashes: BigUint64Array;
  readonly tail: bigint | undefined;
}

/** An endpoint was ejected, or taken back. */
export interface EjectionNews {
  readonly endpoint: bigint;
  readonly out: boolean;
}

/** Tokens that a tenant has used at a replica since the start of its epoch. */
export interface Spending {
  readonly tenant: string;
  readonly tokens: number;
}

/** Update of a replica about itself. */
export interface Update extends Origin {
  readonly kind: 'update';
  /** Time of sending by the sender's clock, in milliseconds since 1970. */
  readonly sentAtMs: number;
  /** Tells seeds of block hashes apart; hashes of another seed mean nothing. */
  readonly seedCheck: number;
  /** Endpoints without a row have no load of the replica. */
  readonly full: boolean;
  /** Whether the replica ends; its load no longer counts then. */
  readonly leaves: boolean;
  readonly loads: readonly LoadRow[];
  readonly placements: readonly Placement[];
  readonly ejections: readonly EjectionNews[];
  readonly spendings: readonly Spending[];
  /** Learned state of the adaptation, as JSON; undefined = not in this update. */
  readonly learned: Uint8Array | undefined;
}

/** Request of one replica to another for a full update and, with `index`, for the prefix index. */
export interface SnapshotRequest extends Omit<Origin, 'sequence'> {
  readonly kind: 'request';
  readonly index: boolean;
}

/** A part of the prefix index, as it was at the update of the same sequence or later. */
export interface IndexPiece extends Origin {
  readonly kind: 'piece';
  /** Counts the pieces of one answer, from 0. */
  readonly number: number;
  readonly last: boolean;
  /** Endpoints by the numbers that the segments use. */
  readonly endpoints: readonly bigint[];
  /** encodeSegments */
  readonly segments: Uint8Array;
}

export type Message = Update | SnapshotRequest | IndexPiece;

/** Raised when older messages would be misread, or their block hashes name other blocks. */
const VERSION = 2;
const KINDS = ['update', 'request', 'piece'] as const;
const FULL = 1;
const LEAVES = 2;
const PARENT = 1;
const TAIL = 2;
/** Least bytes of the parts of a message, to bound their number by the bytes that are there. */
const LOAD_BYTES = 16;
const PLACEMENT_BYTES = 10;
const EJECTION_BYTES = 9;
const SPENDING_BYTES = 9;

const LOAD_FIELDS = ['requests', 'tokens', 'prefill', 'prompt', 'output', 'pending', 'held', 'charged'] as const;

/** Bytes of a message. */
export function encodeMessage(message: Message): Uint8Array {
  const to = new WireWriter();
  to.byte(VERSION);
  to.byte(KINDS.indexOf(message.kind));
  to.text(message.replica);
  to.number(message.epoch);
  if (message.kind === 'update') writeUpdate(to, message);
  else if (message.kind === 'request') to.byte(Number(message.index));
  else writePiece(to, message);
  return to.written.slice();
}

function writeUpdate(to: WireWriter, update: Update): void {
  to.number(update.sequence);
  to.float(update.sentAtMs);
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
  const { learned = new Uint8Array(0) } = update;
  to.number(learned.length);
  to.raw(learned);
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
 * @throws WireError when the bytes are no message of this version
 */
export function decodeMessage(bytes: Uint8Array): Message {
  const from = new WireReader(bytes);
  const version = from.byte();
  if (version !== VERSION) throw new WireError(`version ${version} of the messages, and ${VERSION} is expected`);
  const kind = KINDS[from.byte()];
  if (kind === undefined) throw new WireError('a message of an unknown kind');
  const origin = { replica: from.text(), epoch: from.number() };
  const message =
    kind === 'update'
      ? readUpdate(from, origin)
      : kind === 'request'
        ? ({ kind, ...origin, index: from.byte() !== 0 } as const)
        : readPiece(from, origin);
  if (from.left > 0) throw new WireError(`${from.left} bytes too many`);
  return message;
}

function readUpdate(from: WireReader, origin: Omit<Origin, 'sequence'>): Update {
  const [sequence, sentAtMs, seedCheck, flags] = [from.number(), from.float(), from.number(), from.byte()];
  return {
    kind: 'update',
    ...origin,
    sequence,
    sentAtMs,
    seedCheck,
    full: (flags & FULL) !== 0,
    leaves: (flags & LEAVES) !== 0,
    loads: list(from, LOAD_BYTES, () => readLoad(from)),
    placements: list(from, PLACEMENT_BYTES, () => readPlacement(from)),
    ejections: list(from, EJECTION_BYTES, () => ({ endpoint: from.word(), out: from.byte() !== 0 })),
    spendings: list(from, SPENDING_BYTES, () => ({ tenant: from.text(), tokens: from.float() })),
    learned: readLearned(from),
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
  const endpoint = from.word();
  const [requests, tokens, prefill, prompt] = [from.number(), from.number(), from.number(), from.number()];
  const [output, pending, held, charged] = [from.number(), from.number(), from.number(), from.number()];
  return { endpoint, requests, tokens, prefill, prompt, output, pending, held, charged };
}

function readPlacement(from: WireReader): Placement {
  const endpoint = from.word();
  const flags = from.byte();
  const length = from.count(8);
  const parent = (flags & PARENT) === 0 ? undefined : from.word();
  const hashes = from.words(length);
  return { endpoint, parent, hashes, tail: (flags & TAIL) === 0 ? undefined : from.word() };
}

function readPiece(from: WireReader, origin: Omit<Origin, 'sequence'>): IndexPiece {
  const [sequence, number, last] = [from.number(), from.number(), from.byte() !== 0];
  const endpoints = list(from, 8, () => from.word());
  return { kind: 'piece', ...origin, sequence, number, last, endpoints, segments: from.raw(from.count(1)).slice() };
}
