import type { Medium } from '../../core/types.js';
import type { RequestHeaders } from '../request-headers.js';

/** One request as hook plugins see it: the same object in every hook, from its headers to the end of its answer. */
export interface HookRequest {
  readonly headers: RequestHeaders;
  /** Path with query. */
  readonly path: string;
  /** What the client asked for and what goes upstream; empty in `requestHeaders`, and where a dialect has no model. */
  readonly model: string;
  readonly targetModel: string;
  readonly promptBytes: number;
  /** Different images, videos and sounds of the prompt, at most 32; empty until the body is understood. */
  readonly media: readonly Medium[];
  /** Tokens of one block of the prefix index; known in `hold` and `placed`. */
  readonly blockTokens: number;
  /**
   * Chain hashes of the prompt, one per block and one for a last block that is not whole: each stands for everything up
   * to its own, so prompts with an equal n-th hash begin with the same n blocks. Only `hold` may ask; empty without a prompt.
   */
  promptChain(): BigUint64Array;
  /** Name of the profile that a `filter` or `score` is for; empty in all other hooks. */
  readonly profile: string;
  /** Below zero = sheddable. */
  readonly priority: number;
  /** Flow of the request in fairness and metrics; undefined = the request names none. Only `requestHeaders` may set it. */
  fairnessId: string | undefined;
  /** What plugins tell each other about this request, by name; values of any type. Never leaves the shard. */
  readonly attributes: Map<string, unknown>;
}
