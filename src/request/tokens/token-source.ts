import type { PromptTokens } from '../../core/token-chain.js';
import type { PromptKind } from '../../core/types.js';
import type { ModelEdit } from '../understand.js';

/** A request body whose prompt is to be tokenised. */
export interface PromptBody {
  readonly prompt: PromptKind;
  /** The whole body; its bytes do not change before the answer. */
  readonly chunks: readonly Uint8Array[];
  /** Place of the model's name in the body. */
  readonly modelPlace: ModelEdit;
}

/**
 * Reason why a prompt has no tokens and is estimated. `late`: the deadline has passed. `failed`: no usable answer.
 * `busy`: too many prompts wait already. `paused`: the source has failed repeatedly and is not asked for a while.
 */
export type TokenFailure = 'late' | 'failed' | 'busy' | 'paused';

export type Tokenised =
  | { readonly outcome: 'tokenised'; readonly tokens: PromptTokens }
  | { readonly outcome: TokenFailure; readonly why: string };

/** Pieces of text whose tokens are remembered. */
export interface SegmentsState {
  readonly bytes: number;
  /** Pool time of the last use of the least recently used piece; undefined = there is none. */
  readonly oldestMs: number | undefined;
}

/** Source of prompt tokens, outside of the shard's turn. */
export interface TokenSource {
  /** Whether prompts of this kind can be tokenised; the others are estimated. */
  reads(prompt: PromptKind): boolean;
  /** Never rejects. @param signal aborted when the request has ended and needs no tokens */
  tokenise(body: PromptBody, signal: AbortSignal): Promise<Tokenised>;
  /** Remembered segments; undefined = sources of this kind remember nothing. */
  readonly segments?: SegmentsState | undefined;
  close(): Promise<void>;
}
