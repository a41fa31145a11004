import { type WireReader, WireType } from '../../runtime/protobuf.js';

/** Metadata of the proxy beside the HTTP message (endpoint picker protocol, proposal 004). */
export interface ProxyMetadata {
  /** Addresses that may be picked; empty = none may; undefined = the proxy gave no hint. */
  subset: readonly string[] | undefined;
  /** `ip:port` of the endpoint that produced the answer. */
  served: string | undefined;
  /** Whether the proxy's load balancer says anything of the answer. */
  balanced: boolean;
  /** Name of the pool that the request is for. */
  pool: string | undefined;
}

const SUBSET_NAMESPACE = 'envoy.lb.subset_hint';
const SUBSET_KEY = 'x-gateway-destination-endpoint-subset';
const SERVED_NAMESPACE = 'envoy.lb';
const POOL_NAMESPACE = 'pointsman';
const POOL_KEY = 'x-pointsman-pool';
const SERVED_KEY = 'x-gateway-destination-endpoint-served';

const METADATA_FILTER_METADATA = 1 * 8 + WireType.bytes;
const STRUCT_FIELDS = 1 * 8 + WireType.bytes;
const ENTRY_KEY = 1 * 8 + WireType.bytes;
const ENTRY_VALUE = 2 * 8 + WireType.bytes;
const VALUE_NULL = 1 * 8 + WireType.varint;
const VALUE_STRING = 3 * 8 + WireType.bytes;
const VALUE_LIST = 6 * 8 + WireType.bytes;
const LIST_VALUES = 1 * 8 + WireType.bytes;

/** Reads an `envoy.config.core.v3.Metadata` that fills the reader's current range into `into`. */
export function readProxyMetadata(reader: WireReader, into: ProxyMetadata): void {
  forEachEntry(reader, METADATA_FILTER_METADATA, (namespace) => {
    if (namespace === SUBSET_NAMESPACE) {
      forEachEntry(reader, STRUCT_FIELDS, (key) => {
        if (key === SUBSET_KEY) into.subset = readAddresses(reader);
      });
    } else if (namespace === SERVED_NAMESPACE) {
      into.balanced = true;
      forEachEntry(reader, STRUCT_FIELDS, (key) => {
        if (key === SERVED_KEY) into.served = readAddresses(reader)?.[0];
      });
    } else if (namespace === POOL_NAMESPACE) {
      forEachEntry(reader, STRUCT_FIELDS, (key) => {
        if (key === POOL_KEY) into.pool = readAddresses(reader)?.[0];
      });
    }
  });
}

/**
 * Walks a protobuf map field. A map entry may name its key behind its value, so the value's range is remembered and
 * read once the key is known.
 */
function forEachEntry(reader: WireReader, entryTag: number, visit: (key: string) => void): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag !== entryTag) {
      reader.skip(tag);
      continue;
    }
    const outer = reader.enter();
    let key = '';
    let valueStart = reader.end;
    let valueEnd = reader.end;
    while (reader.at < reader.end) {
      const inner = reader.tag();
      if (inner !== ENTRY_KEY && inner !== ENTRY_VALUE) {
        reader.skip(inner);
        continue;
      }
      const length = reader.length();
      if (inner === ENTRY_KEY) {
        key = reader.bytes.toString('utf8', reader.at, reader.at + length);
      } else {
        valueStart = reader.at;
        valueEnd = reader.at + length;
      }
      reader.at += length;
    }
    const entryEnd = reader.end;
    reader.at = valueStart;
    reader.end = valueEnd;
    visit(key);
    reader.at = entryEnd;
    reader.end = entryEnd;
    reader.leave(outer);
  }
}

/**
 * The addresses in a `google.protobuf.Value`: a string holds a comma list, a list holds such strings, whatever else
 * is in the list is passed over. A null counts as absent; any other kind names no address, and so allows none.
 */
function readAddresses(reader: WireReader): readonly string[] | undefined {
  let addresses: string[] | undefined = [];
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag === VALUE_STRING) {
      addresses = [];
      readCommaList(reader, addresses);
    } else if (tag === VALUE_LIST) {
      addresses = [];
      const outer = reader.enter();
      readListItems(reader, addresses);
      reader.leave(outer);
    } else if (tag === VALUE_NULL) {
      reader.skip(tag);
      addresses = undefined;
    } else {
      reader.skip(tag);
      addresses = [];
    }
  }
  return addresses;
}

function readListItems(reader: WireReader, into: string[]): void {
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag !== LIST_VALUES) {
      reader.skip(tag);
      continue;
    }
    const outer = reader.enter();
    while (reader.at < reader.end) {
      const kind = reader.tag();
      if (kind === VALUE_STRING) readCommaList(reader, into);
      else reader.skip(kind);
    }
    reader.leave(outer);
  }
}

function readCommaList(reader: WireReader, into: string[]): void {
  const length = reader.length();
  const value = reader.bytes.toString('utf8', reader.at, reader.at + length);
  reader.at += length;
  for (const part of value.split(',')) {
    const address = part.trim();
    if (address !== '') into.push(address);
  }
}
