import type { Medium } from '../../core/types.js';
import type { RequestHeaders } from '../request-headers.js';

/** One request as hook plugins see it: the same object in every hook, from the headers to the end of the answer. */
export interface HookRequest {
  readonly headers: RequestHeaders;
  /** Path with query. */
  readonly path: string;
  /**
   * Model that the client named, and model sent upstream. Empty in `requestHeaders`, and for a dialect without a model.
   */
  readonly model: string;
  readonly targetModel: string;
  readonly promptBytes: number;
  /** Distinct images, videos and sounds of the prompt, at most 32; empty until the body is read. */
  readonly media: readonly Medium[];
  /** Tokens of one block of the prefix index; known in `hold` and `placed`. */
  readonly blockTokens: number;
  /**
   * Chain hashes of the prompt, one per block and one for a partial last block. Each stands for all blocks up to its
   * own, so prompts with an equal n-th hash begin with the same n blocks. Available in `hold` only; empty without a
   * prompt.
   */
  promptChain(): BigUint64Array;
  /** Name of the profile of the present `filter` or `score`; empty in all other hooks. */
  readonly profile: string;
  /** Below 0 = sheddable. */
  readonly priority: number;
  /**
   * Flow of the request in fairness and metrics; undefined = the request names none. Only `requestHeaders` may set it.
   */
  fairnessId: string | undefined;
  /** Values that plugins exchange about this request, by name and of any type. They never leave the shard. */
  readonly attributes: Map<string, unknown>;
}
