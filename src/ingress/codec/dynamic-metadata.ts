import { field, text } from '../../runtime/protobuf.js';

/** Field `dynamic_metadata` of a ProcessingResponse. */
const DYNAMIC_METADATA = 8;

/** A `fields` entry of a Struct around an encoded Value. */
export function structEntry(key: string, value: Buffer): Buffer {
  return field(1, field(1, text(key)), field(2, value));
}

/** A Value that is a number. */
export function numberValue(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(9);
  bytes[0] = 0x11; // Value.number_value, fixed64
  bytes.writeDoubleLE(value, 1);
  return bytes;
}

/** A Value that is a Struct of encoded entries. */
export function structValue(entries: readonly Buffer[]): Buffer {
  return field(5, ...entries);
}

/** A Value that is a string. */
export function stringValue(value: string): Buffer {
  return field(3, text(value));
}

function scalarValue(value: number | string | boolean): Buffer {
  if (typeof value === 'number') return numberValue(value);
  if (typeof value === 'string') return stringValue(value);
  return Buffer.from([0x20, value ? 1 : 0]); // Value.bool_value
}

/** The encoded `dynamic_metadata` field around namespaces that are encoded already, as entries of a Struct. */
export function metadataField(namespaces: readonly Buffer[]): Buffer {
  return field(DYNAMIC_METADATA, ...namespaces);
}

/** The encoded `dynamic_metadata` field of values by namespace and key; no bytes without a namespace. */
export function encodeMetadata(
  namespaces: ReadonlyMap<string, ReadonlyMap<string, number | string | boolean>>,
): Buffer {
  if (namespaces.size === 0) return Buffer.alloc(0);
  const encoded = [...namespaces].map(([namespace, values]) => {
    const entries = [...values].map(([key, value]) => structEntry(key, scalarValue(value)));
    return structEntry(namespace, structValue(entries));
  });
  return metadataField(encoded);
}
