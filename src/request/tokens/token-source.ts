import type { PromptTokens } from '../../core/token-chain.js';
import type { PromptKind } from '../../core/types.js';
import type { ModelEdit } from '../understand.js';

/** A request body whose prompt wants its tokens. */
export interface PromptBody {
  readonly prompt: PromptKind;
  /** The whole body; its bytes stay as they are until the answer has come. */
  readonly chunks: readonly Uint8Array[];
  /** Where the model's name stands in it. */
  readonly modelPlace: ModelEdit;
}

/**
 * Why a prompt has no tokens and is estimated: `late` the deadline has passed, `failed` no usable answer, `busy` too many
 * prompts wait already, `paused` the source has failed so often that it is left alone for a while.
 */
export type TokenFailure = 'late' | 'failed' | 'busy' | 'paused';

export type Tokenised =
  | { readonly outcome: 'tokenised'; readonly tokens: PromptTokens }
  | { readonly outcome: TokenFailure; readonly why: string };

/** Finds the tokens of prompts, outside of the shard's turn. */
export interface TokenSource {
  /** Whether prompts of this kind can be tokenised here; the others are estimated. */
  reads(prompt: PromptKind): boolean;
  /** Never rejects. @param signal the request is gone: nobody waits for the answer any more */
  tokenise(body: PromptBody, signal: AbortSignal): Promise<Tokenised>;
  close(): Promise<void>;
}
