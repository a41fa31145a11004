import { crc32 } from 'node:zlib';
import type { Endpoint } from '../../contract/endpoint.js';

/** Beginning of a recording: name and version of the format. */
export const MAGIC = Buffer.from('PTSMREC\x01', 'latin1');

/** An endpoint and the slot that states call it by. */
export interface RecordedEndpoint {
  readonly slot: number;
  readonly generation: number;
  readonly endpoint: Endpoint;
}

/** Facts of a recording that hold for all of it. */
export interface RecordingHeader {
  /** Version of the program. */
  readonly version: string;
  readonly pool: string;
  /** Version of the core's memory layout, which the states have. */
  readonly layout: number;
  /** Slots of the pool: cells of a column of the state. */
  readonly slots: number;
  /** Pool clock and wall clock at the beginning, in milliseconds. */
  readonly startedMs: number;
  readonly wallMs: number;
  /** Seconds that were asked for. */
  readonly seconds: number;
  /** Effective configuration, YAML. */
  readonly configuration: string;
  readonly allowExperimental: boolean;
  /** Names of the profiles, by number. */
  readonly profiles: readonly string[];
  /** Request headers by the number of their hash. */
  readonly requestKeys: readonly string[];
  readonly endpoints: readonly RecordedEndpoint[];
}

/** The end of a whole recording. */
export interface RecordingTrailer {
  readonly decisions: number;
  /** Frames beyond the bound of bytes. */
  readonly dropped: number;
  /** Shards whose last frames are missing. */
  readonly missingShards: number;
  readonly seconds: number;
}

/** Magic, u32 length of the header, the header as JSON, u32 CRC-32 of it. */
export function recordingHead(header: RecordingHeader): Buffer {
  const text = Buffer.from(JSON.stringify(header));
  const numbers = Buffer.alloc(8);
  numbers.writeUInt32LE(text.length, 0);
  numbers.writeUInt32LE(crc32(text), 4);
  return Buffer.concat([MAGIC, numbers.subarray(0, 4), text, numbers.subarray(4)]);
}
