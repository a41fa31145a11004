import type * as Msgpack from '@msgpack/msgpack';
import { type BlockPlace, placeOfMedium } from '../contract/block-place.js';
import { errorMessage } from '../runtime/error-message.js';
import { optionalPackage } from '../runtime/optional-package.js';
import { type BlockExtra, type KvBatch, type KvEvent, MalformedEvents } from './event.js';

// The messages of vLLM and SGLang: msgpack of `[time, events, rank?]`, or a map with these names. An event is a list
// that begins with its tag (vLLM before 2026-06, SGLang) or a map with the tag under `type`. Positions and names of the
// fields: vllm/distributed/kv_events.py, sglang/srt/disaggregation/kv_events.py. Trailing fields may be left out.

// Hashes are 64-bit numbers, which JavaScript's numbers do not hold.
const { Decoder } = optionalPackage<typeof Msgpack>('@msgpack/msgpack', 'KV events');
const decoder = new Decoder({ useBigInt64: true });

const STORED_FIELDS = [
  'type',
  'block_hashes',
  'parent_block_hash',
  'token_ids',
  'block_size',
  'lora_id',
  'medium',
  'lora_name',
  'extra_keys',
  'group_idx',
  'kv_cache_spec_kind',
] as const;
const REMOVED_FIELDS = ['type', 'block_hashes', 'medium', 'group_idx'] as const;

type Fields = Readonly<Record<string, unknown>>;

/** Decodes one message. @throws MalformedEvents */
export function decodeEvents(payload: Uint8Array): KvBatch {
  let batch: unknown;
  try {
    batch = decoder.decode(payload);
  } catch (error) {
    throw new MalformedEvents(`no msgpack: ${errorMessage(error)}`);
  }
  const list: unknown = Array.isArray(batch) ? batch[1] : (batch as Fields | null)?.events;
  if (!Array.isArray(list)) throw new MalformedEvents('no list of events');
  const events = list.map(decodeEvent);
  const known = events.filter((event) => event !== undefined);
  return { events: known, unknown: events.length - known.length };
}

function decodeEvent(raw: unknown): KvEvent | undefined {
  const tag = tagOf(raw);
  if (tag === 'BlockStored') return stored(fieldsOf(raw, STORED_FIELDS));
  if (tag === 'BlockRemoved') return removed(fieldsOf(raw, REMOVED_FIELDS));
  return tag === 'AllBlocksCleared' ? { kind: 'cleared' } : undefined;
}

function tagOf(raw: unknown): string {
  const tag: unknown = Array.isArray(raw) ? raw[0] : (raw as Fields | null)?.type;
  if (typeof tag !== 'string') throw new MalformedEvents('an event without a type');
  return tag;
}

function fieldsOf(raw: unknown, names: readonly string[]): Fields {
  if (!Array.isArray(raw)) return raw as Fields;
  return Object.fromEntries(names.map((name, index) => [name, raw[index] as unknown]));
}

function stored(fields: Fields): KvEvent {
  const hashes = hashList(fields.block_hashes);
  const parent = parentOf(fields.parent_block_hash);
  const tokens = tokenList(fields.token_ids);
  const blockTokens = fields.block_size;
  if (!Number.isInteger(blockTokens) || (blockTokens as number) < 1) throw new MalformedEvents('block_size is no size');
  const adapter = adapterOf(fields) ?? adapterKey(fields.extra_keys);
  return {
    kind: 'stored',
    hashes,
    parent,
    tokens,
    blockTokens: blockTokens as number,
    tier: tierOf(fields),
    owner: ownerOf(fields),
    adapter,
    extras: extrasOf(fields, typeof adapter === 'string' ? adapter : undefined),
    group: groupOf(fields),
    groupKind: typeof fields.kv_cache_spec_kind === 'string' ? fields.kv_cache_spec_kind : undefined,
  };
}

function removed(fields: Fields): KvEvent {
  return {
    kind: 'removed',
    hashes: hashList(fields.block_hashes),
    tier: tierOf(fields),
    owner: ownerOf(fields),
    group: groupOf(fields),
  };
}

function hashList(value: unknown): readonly bigint[] {
  if (!Array.isArray(value)) throw new MalformedEvents('block_hashes is no list');
  return value.map(blockHash);
}

/** A whole number of 64 bits, signed or not; of a longer digest the last eight bytes (as llm-d-router). */
function blockHash(value: unknown): bigint {
  if (typeof value === 'bigint') return BigInt.asUintN(64, value);
  if (Number.isSafeInteger(value)) return BigInt.asUintN(64, BigInt(value as number));
  if (value instanceof Uint8Array && value.length >= 8) {
    return new DataView(value.buffer, value.byteOffset).getBigUint64(value.length - 8);
  }
  throw new MalformedEvents('a block hash is neither a whole number nor at least eight bytes');
}

/** Parent of a block; nothing, or 0 from llm-d-inference-sim, at the beginning of a prompt. */
function parentOf(value: unknown): bigint | undefined {
  const hash = value === null || value === undefined ? 0n : blockHash(value);
  return hash === 0n ? undefined : hash;
}

function tokenList(value: unknown): Uint32Array {
  if (!Array.isArray(value)) throw new MalformedEvents('token_ids is no list');
  for (const id of value) {
    if (!Number.isInteger(id) || (id as number) < 0 || (id as number) > 0xffff_ffff) {
      throw new MalformedEvents('token_ids has something that is no token id');
    }
  }
  return Uint32Array.from(value as number[]);
}

/**
 * No medium is the engine's own memory. A block of another locality lies on another machine, and one of this machine on
 * a medium that is not known lies on its disk.
 */
function tierOf({ medium, locality }: Fields): BlockPlace {
  const where = typeof locality === 'string' ? locality.toLowerCase() : '';
  if (where === 'remote') return 'remote';
  const place = typeof medium === 'string' ? placeOfMedium(medium) : 'gpu';
  return place === 'remote' && where === 'local' ? 'disk' : place;
}

/** Longest name of a tier that is told apart. */
const OWNER_LENGTH_MAX = 256;

function ownerOf({ ownership }: Fields): string | undefined {
  return typeof ownership === 'string' && ownership !== '' ? ownership.slice(0, OWNER_LENGTH_MAX) : undefined;
}

function groupOf({ group_idx: group }: Fields): number | undefined {
  return typeof group === 'number' ? group : undefined;
}

function adapterOf({ lora_name: name, lora_id: id }: Fields): string | undefined | { readonly unnamed: true } {
  if (typeof name === 'string' && name !== '') return name;
  return id === undefined || id === null ? undefined : { unnamed: true };
}

/** Name of the adapter in the typed extra keys of the first block, where the event itself does not name it. */
function adapterKey(keys: unknown): string | undefined {
  const first: unknown = Array.isArray(keys) ? keys[0] : undefined;
  const typed = (Array.isArray(first) ? first : [first]).find((key) => (key as Fields | null)?.type === 'lora');
  const name: unknown = (typed as Fields | undefined)?.name;
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** Extra keys: for each block nothing, or a list of strings, bytes, `[digest, offset]` and typed maps. */
function extrasOf({ extra_keys: keys, cache_salt: salt }: Fields, adapter: string | undefined): readonly BlockExtra[] {
  if (!Array.isArray(keys)) return typeof salt === 'string' ? [{ names: [], salt }] : [];
  return keys.map((entry, block) => {
    const extra = blockExtra(
      Array.isArray(entry) ? entry : entry === null || entry === undefined ? [] : [entry],
      adapter,
      block,
    );
    return block === 0 && typeof salt === 'string' ? { ...extra, salt } : extra;
  });
}

function blockExtra(keys: readonly unknown[], adapter: string | undefined, block: number): BlockExtra {
  const names: string[] = [];
  let salt: string | undefined;
  for (const given of keys) {
    const key = isTyped(given, 'legacy') ? given.value : given;
    if (typeof key === 'string') {
      // Bare strings are the adapter's name and, in a prompt's first block, the salt.
      if (key === adapter) continue;
      if (block === 0) salt = key;
      else names.push(key);
    } else if (isTyped(key, 'cache_salt')) salt = String(key.salt);
    else if (!isTyped(key, 'lora') && key !== null && key !== undefined) names.push(nameOf(key));
  }
  return { names: [...new Set(names)], salt };
}

function isTyped(key: unknown, tag: string): key is Fields {
  return typeof key === 'object' && key !== null && (key as Fields).type === tag;
}

/** Digest of `[digest, offset]`, bytes, or a typed map; all of an unknown type, so that nothing matches. */
function nameOf(key: unknown): string {
  if (key instanceof Uint8Array) return Buffer.from(key).toString('hex');
  if (Array.isArray(key)) return nameOf(key[0]);
  if (typeof key !== 'object' || key === null) return String(key);
  const { hash, value, ...rest } = key as Fields;
  const named = hash ?? value;
  return named === undefined ? Object.values(rest).map(nameOf).join(' ') : nameOf(named);
}
