/** A server that renders prompts: vLLM's `/v1/completions/render` and `/v1/chat/completions/render`. */
export interface RenderSettings {
  readonly kind: 'render';
  /** Base URL without a slash at its end; undefined = the endpoints of the pool in turn. */
  readonly url: string | undefined;
  /** Name of the model on that server. */
  readonly modelName: string;
  /** Deadlines in milliseconds: for text, and for messages with parts, whose images may have to be fetched. */
  readonly timeoutMs: number;
  readonly partsTimeoutMs: number;
}

/** The tokeniser files of the model, in a folder. */
export interface LocalTokenSettings {
  readonly kind: 'local';
  /** Absolute path. */
  readonly folder: string;
  /** Deadline in milliseconds. */
  readonly timeoutMs: number;
  /** Tokeniser threads of each shard. */
  readonly threads: number;
}

/** Source of prompt tokens in place of the estimate. */
export type TokenSettings = RenderSettings | LocalTokenSettings;
