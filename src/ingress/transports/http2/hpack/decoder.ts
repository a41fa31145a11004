import { ConnectionError, ErrorCode } from '../protocol.js';
import { decodeHuffman, huffmanBytesMax } from './huffman.js';
import { STATIC_TABLE } from './static-table.js';

/** Bytes that a field counts beside its name and value (RFC 7541, section 4.1). */
const FIELD_OVERHEAD_BYTES = 32;

/** Size of the dynamic table: the protocol's default, which no setting of ours changes. */
export const TABLE_BYTES_MAX = 4_096;
const TABLE_FIELDS_MAX = TABLE_BYTES_MAX / FIELD_OVERHEAD_BYTES;

/** Longest name or value. */
const STRING_BYTES_MAX = 65_536;

const NO_BYTES = Buffer.alloc(0);
/** A decoded string on its way from bytes to text; of the thread. */
const text = Buffer.allocUnsafeSlow(STRING_BYTES_MAX);

/** One header field. */
export interface HeaderField {
  readonly name: string;
  readonly value: string;
  readonly size: number;
  /** Whether name and value hold only characters that a field may have (RFC 9113, section 8.2.1). */
  readonly valid: boolean;
}

/** Takes the fields of a block in their order. */
export type FieldSink = (field: HeaderField) => void;

function makeField(name: string, value: string): HeaderField {
  const size = name.length + value.length + FIELD_OVERHEAD_BYTES;
  return { name, value, size, valid: isFieldName(name) && isFieldValue(value) };
}

/** Characters of a token (RFC 9110, section 5.6.2) without capitals. */
const NAME_CHARACTERS = new Set([..."!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"].map((c) => c.charCodeAt(0)));

/** Whether the name is a token, with a colon in front where it is a pseudo-header. */
function isFieldName(name: string): boolean {
  const from = name.charCodeAt(0) === 0x3a ? 1 : 0;
  for (let i = from; i < name.length; i++) if (!NAME_CHARACTERS.has(name.charCodeAt(i))) return false;
  return name.length > from;
}

/** Whether there are no control characters but tabs inside, and no space or tab at either end. */
function isFieldValue(value: string): boolean {
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if ((code < 0x20 && code !== 0x09) || code === 0x7f) return false;
  }
  return value.length === 0 || !(isBlank(value.charCodeAt(0)) || isBlank(value.charCodeAt(value.length - 1)));
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

const STATIC_FIELDS: readonly HeaderField[] = STATIC_TABLE.map(([name, value]) => makeField(name, value));

/**
 * HPACK (RFC 7541) of one connection, reading. The dynamic table holds at most 4 KB; a string or number that exceeds
 * the bound of a block ends the connection, since the table is out of step from then on.
 */
export class HpackDecoder {
  /** Newest first, as a ring: `#newest` is the place of dynamic index 1. */
  readonly #fields: (HeaderField | undefined)[] = new Array(TABLE_FIELDS_MAX).fill(undefined);
  #newest = 0;
  #count = 0;
  #bytes = 0;
  #limit = TABLE_BYTES_MAX;
  /** Changes of the dynamic table so far: between two of them, equal blocks mean equal fields. */
  changes = 0;
  #block: Buffer = NO_BYTES;
  #at = 0;
  #end = 0;

  /** Bytes that the dynamic table counts now. */
  get tableBytes(): number {
    return this.#bytes;
  }

  /**
   * Decodes one header block, bytes[from, to).
   * @throws ConnectionError (COMPRESSION_ERROR) when it is no valid block
   */
  decode(bytes: Buffer, from: number, to: number, sink: FieldSink): void {
    this.#block = bytes;
    this.#at = from;
    this.#end = to;
    let begun = false;
    while (this.#at < to) {
      const first = bytes[this.#at]!;
      if (first >= 0x80) sink(this.#indexed(this.#integer(7)));
      else if (first >= 0x40) sink(this.#add(this.#literal(6)));
      else if (first >= 0x20) {
        if (begun) throw malformed('a table size update behind a field');
        this.#resize(this.#integer(5));
        continue;
      } else sink(this.#literal(4));
      begun = true;
    }
  }

  #indexed(index: number): HeaderField {
    if (index === 0) throw malformed('index 0');
    const dynamic = index - STATIC_FIELDS.length;
    if (dynamic <= 0) return STATIC_FIELDS[index - 1]!;
    if (dynamic > this.#count) throw malformed(`index ${index} is beyond the table`);
    return this.#fields[(this.#newest + dynamic - 1) % TABLE_FIELDS_MAX]!;
  }

  #literal(prefixBits: number): HeaderField {
    const index = this.#integer(prefixBits);
    const name = index === 0 ? this.#string() : this.#indexed(index).name;
    return makeField(name, this.#string());
  }

  #add(field: HeaderField): HeaderField {
    this.changes++;
    this.#evict(this.#limit - field.size);
    // A field larger than the table empties it and is not kept (section 4.4).
    if (field.size > this.#limit) return field;
    this.#newest = (this.#newest + TABLE_FIELDS_MAX - 1) % TABLE_FIELDS_MAX;
    this.#fields[this.#newest] = field;
    this.#count++;
    this.#bytes += field.size;
    return field;
  }

  /** Removes the oldest fields until at most `bytes` are left. */
  #evict(bytes: number): void {
    while (this.#count > 0 && this.#bytes > bytes) {
      const oldest = (this.#newest + --this.#count) % TABLE_FIELDS_MAX;
      this.#bytes -= this.#fields[oldest]!.size;
      this.#fields[oldest] = undefined;
    }
  }

  #resize(limit: number): void {
    if (limit > TABLE_BYTES_MAX) throw malformed(`a table of ${limit} bytes, more than was allowed`);
    this.changes++;
    this.#limit = limit;
    this.#evict(limit);
  }

  /** An integer with a prefix (section 5.1); far above every bound here it is refused. */
  #integer(prefixBits: number): number {
    const mask = (1 << prefixBits) - 1;
    let value = this.#byte() & mask;
    if (value < mask) return value;
    for (let shift = 0; shift <= 21; shift += 7) {
      const byte = this.#byte();
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw malformed('a number of more than four bytes');
  }

  #byte(): number {
    if (this.#at >= this.#end) throw malformed('a field is cut off');
    return this.#block[this.#at++]!;
  }

  #string(): string {
    const huffman = this.#at < this.#end && this.#block[this.#at]! >= 0x80;
    const length = this.#integer(7);
    const from = this.#at;
    const to = from + length;
    if (to > this.#end) throw malformed('a string is cut off');
    this.#at = to;
    if (!huffman) {
      if (length > STRING_BYTES_MAX) throw malformed(`a string of ${length} bytes`);
      return this.#block.toString('latin1', from, to);
    }
    if (huffmanBytesMax(length) > STRING_BYTES_MAX) throw malformed(`a string of ${length} encoded bytes`);
    const decoded = decodeHuffman(this.#block, from, to, text);
    if (decoded < 0) throw malformed('a string that is no Huffman code');
    return text.toString('latin1', 0, decoded);
  }
}

function malformed(what: string): ConnectionError {
  return new ConnectionError(ErrorCode.compression, `header block: ${what}`);
}
