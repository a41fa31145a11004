import { CORE } from './core-names.js';

/** A byte range [start, end) of a request body, counted over all its chunks. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** Place of the prompt in a body. See assembly/request/kinds.ts and scan.ts. */
export const PromptKind = {
  completions: CORE.PROMPT_COMPLETIONS,
  chat: CORE.PROMPT_CHAT,
  responses: CORE.PROMPT_RESPONSES,
  embeddings: CORE.PROMPT_EMBEDDINGS,
  conversations: CORE.PROMPT_CONVERSATIONS,
  images: CORE.PROMPT_IMAGES,
  /** Anthropic's messages, with `system` in front. */
  messages: CORE.PROMPT_MESSAGES,
  /** `token_ids` of vLLM's generate. */
  tokens: CORE.PROMPT_TOKENS,
  /** `input_ids` of SGLang's generate. */
  sglang: CORE.PROMPT_SGLANG,
  /** GenerateRequest of vLLM's engine service, in a gRPC frame. */
  engine: CORE.PROMPT_ENGINE,
  /** EmbedRequest of vLLM's engine service. */
  engineEmbed: CORE.PROMPT_ENGINE_EMBED,
  /** A chat completions body in a Vertex AI message, in a gRPC frame. */
  vertexChat: CORE.PROMPT_VERTEX_CHAT,
  /** A responses body in a Vertex AI message, in a gRPC frame. */
  vertexResponses: CORE.PROMPT_VERTEX_RESPONSES,
} as const;
export type PromptKind = (typeof PromptKind)[keyof typeof PromptKind];

/** An image, video or sound of a prompt. */
export interface Medium {
  /** Hash of its URL or data, as the body writes it; equal on all threads of a process, and only there. */
  readonly hash: bigint;
  readonly modality: 'image' | 'video' | 'audio';
}

/** Result of a scan at the end of the body. Ranges cover the raw JSON value, quotes and brackets included. */
export interface RequestScanResult {
  /** The decoded model name; undefined when the key is absent or no string. At most 1,024 bytes are kept. */
  readonly model: string | undefined;
  /** The last value of `model`, of any type. */
  readonly modelRange: ByteRange | undefined;
  readonly stream: boolean;
  /** Client's bound on output tokens, by the rule of the prompt kind; undefined when absent, negative or fractional. */
  readonly maxOutputTokens: number | undefined;
  /**
   * Range of the prompt value (prompt, messages, input or items); undefined when the key is absent or its shape is not
   * allowed.
   */
  readonly promptRange: ByteRange | undefined;
  /** Bytes of prompt content behind the hashes and the token estimate (tools and system included). */
  readonly promptBytes: number;
  readonly toolsRange: ByteRange | undefined;
  /** Range of `chat_template_kwargs` of a chat. */
  readonly templateRange: ByteRange | undefined;
  readonly cacheSalt: string | undefined;
  /** Distinct images, videos and sounds of the prompt, at most 32; empty for kinds whose parts are not read. */
  readonly media: readonly Medium[];
  /** Whether the prompt has images, audio or video. */
  readonly hasMedia: boolean;
  /** Whether the body is a JSON object, or a message that holds one. */
  readonly isObject: boolean;
  /** The first flaw that an engine would refuse; undefined = none. */
  readonly flaw: ScanFlaw | undefined;
}

/**
 * A field of a wrong shape: no prompt, a prompt without elements, a prompt of another type, Anthropic's `system`,
 * SGLang's `extra_key` and `stream`. The first one in this order.
 */
export type ScanFlaw = 'missing' | 'empty' | 'shape' | 'system' | 'salt' | 'stream';

/** Position and reason of an unreadable body. */
export interface ScanRefusal {
  /**
   * The unreadable layer: the gRPC frame, the message in it, or a message without a document. Absent for the JSON
   * document itself, from whose first byte the position counts then.
   */
  readonly layer?: 'frame' | 'message' | 'bare';
  /** Byte offset of the first byte that cannot be part of a JSON document (or the length, when it ends too early). */
  readonly position: number;
  readonly reason: string;
}

/** Form of the usage in an answer. */
export const AnswerForm = {
  /** `usage` at the top: OpenAI, vLLM's generate. */
  usage: CORE.FORM_USAGE,
  /** OpenAI's responses: in a stream only that of `response.completed`. */
  responses: CORE.FORM_RESPONSES,
  /** Anthropic's messages. */
  messages: CORE.FORM_MESSAGES,
  /** `meta_info` of SGLang's generate; in a stream only with a `finish_reason`. */
  sglang: CORE.FORM_SGLANG,
  /** GenerateResponse of vLLM's engine service, in gRPC frames. */
  engine: CORE.FORM_ENGINE,
  /** EmbedResponse of vLLM's engine service. */
  engineEmbed: CORE.FORM_ENGINE_EMBED,
  /** google.api.HttpBody in gRPC frames, with JSON or server-sent events in it. */
  vertex: CORE.FORM_VERTEX,
} as const;
export type AnswerForm = (typeof AnswerForm)[keyof typeof AnswerForm];

/** Token usage as an engine reported it; unknown parts are -1. */
export interface Usage {
  promptTokens: number;
  completionTokens: number;
  totalTokens: number;
  cachedTokens: number;
}

/**
 * Signs of life that an answer will give: `stream` its output piece by piece, `end` its end alone, `later` its output
 * piece by piece after the work of other endpoints, `nothing` = unknown.
 */
export type AnswerSign = 'nothing' | 'stream' | 'end' | 'later';
