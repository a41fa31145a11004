import type { BlockPlace } from '../contract/block-place.js';

/** Event of an engine's KV cache. Hashes are the engine's own; they only name blocks. */
export type KvEvent =
  | {
      readonly kind: 'stored';
      readonly hashes: readonly bigint[];
      /** Undefined = the blocks stand at the beginning of a prompt. */
      readonly parent: bigint | undefined;
      readonly tokens: Uint32Array;
      /** Tokens of one block of the engine. */
      readonly blockTokens: number;
      readonly tier: BlockPlace;
      /** Secondary tier that has the blocks; undefined = the engine does not tell. */
      readonly owner: string | undefined;
      /** Name of the LoRA adapter; undefined = the base model. `unnamed` = one whose name the engine does not tell. */
      readonly adapter: string | undefined | { readonly unnamed: true };
      /** Content of blocks besides tokens, one list for each block; empty = none. */
      readonly extras: readonly BlockExtra[];
      readonly group: number | undefined;
      /** Kind of the cache group (`full_attention`, `sliding_window` …); undefined = not in the event. */
      readonly groupKind: string | undefined;
    }
  | {
      readonly kind: 'removed';
      readonly hashes: readonly bigint[];
      readonly tier: BlockPlace;
      readonly owner: string | undefined;
      readonly group: number | undefined;
    }
  | { readonly kind: 'cleared' };

/** Inputs of a block's hash besides its tokens. */
export interface BlockExtra {
  /** Digests of images and the like, in the order in which they stand in the block. */
  readonly names: readonly string[];
  readonly salt: string | undefined;
}

/** The events of one message. */
export interface KvBatch {
  readonly events: readonly KvEvent[];
  /** Events of kinds that came to the engines after this was written. */
  readonly unknown: number;
}

/** A message that is not what the engines send. */
export class MalformedEvents extends Error {}
