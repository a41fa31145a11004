/** A server that renders prompts: vLLM's `/v1/completions/render` and `/v1/chat/completions/render`. */
export interface RenderSettings {
  readonly kind: 'render';
  /** Base URL without a slash at its end; undefined = the endpoints of the pool in turn. */
  readonly url: string | undefined;
  /** Name of the model as that server knows it. */
  readonly modelName: string;
  /** Deadlines in milliseconds: of text, and of messages with parts, for which images may have to be fetched. */
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
  /** Threads that cut prompts, for each shard. */
  readonly threads: number;
}

/** Where the tokens of prompts come from, instead of an estimate. */
export type TokenSettings = RenderSettings | LocalTokenSettings;
