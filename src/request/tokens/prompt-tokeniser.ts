import type * as Jinja from '@huggingface/jinja';
import type * as Tokenizers from '@huggingface/tokenizers';
import { optionalPackage } from '../../runtime/optional-package.js';
import { poolClockMs } from '../../runtime/pool-clock.js';
import { SegmentCache } from './segment-cache.js';
import type { SegmentsState } from './token-source.js';

/** The files of a model, as Hugging Face lays them out. */
export interface TokeniserFiles {
  /** `tokenizer.json`, parsed. */
  readonly tokenizer: object;
  /** `tokenizer_config.json`, parsed; empty when the model has none. */
  readonly config: Readonly<Record<string, unknown>>;
  /** `chat_template.jinja`; undefined = the configuration holds the template, or there is none. */
  readonly template: string | undefined;
}

/** A prompt that this tokeniser cannot turn into the engine's tokens. */
export class UnreadablePrompt extends Error {}

/** A request body, parsed. */
type Body = Readonly<Record<string, unknown>>;

/** Bound on the bytes of the remembered segments of one thread. */
const CACHE_BYTES = 64 * 1024 * 1024;
/**
 * Length from which texts are remembered. Length from which on texts are remembered; shorter ones are tokenised as fast
 * as they are looked up.
 */
const REMEMBERED_CHARACTERS = 32;

/**
 * Turns prompts into the tokens of one model: template, special tokens, and the text between them.
 *
 * Special tokens are cut out of a text first, so the ids of a text are the ids of the pieces between them, in order.
 * The pieces are remembered: of a conversation that has grown, only the new pieces are tokenised. This property is
 * tested when the model is loaded. A model without such a token has its texts tokenised as a whole.
 */
export class PromptTokeniser {
  readonly #tokenizer: Tokenizers.Tokenizer;
  readonly #config: Readonly<Record<string, unknown>>;
  readonly #templates: ReadonlyMap<string, Jinja.Template>;
  readonly #special: ReadonlyMap<string, number>;
  readonly #cut: RegExp | undefined;
  readonly #cache = new SegmentCache(CACHE_BYTES, poolClockMs);
  /** Ids before and after a text with special tokens around it; undefined = they cannot be separated from the text. */
  readonly #frame: { readonly before: readonly number[]; readonly behind: readonly number[] } | undefined;

  constructor({ tokenizer, config, template }: TokeniserFiles) {
    this.#tokenizer = newTokenizer(tokenizer, config);
    this.#config = config;
    this.#templates = templatesOf(config, template);
    this.#special = specialTokens(this.#tokenizer);
    this.#cut = this.#cutsAtSpecialTokens();
    this.#frame = this.#findFrame();
  }

  /** The remembered pieces of text. */
  get segments(): SegmentsState {
    return { bytes: this.#cache.bytes, oldestMs: this.#cache.oldestMs };
  }

  /** Whether pieces of text are remembered. */
  get remembers(): boolean {
    return this.#cut !== undefined;
  }

  /** Tokens of a completions body. @throws UnreadablePrompt */
  completion(body: Body): Uint32Array {
    const { prompt, add_special_tokens: special = true } = body;
    if (typeof prompt === 'string') return this.#framed(prompt, special !== false);
    if (!Array.isArray(prompt)) throw new UnreadablePrompt('the prompt is neither a text nor a list');
    if (prompt.every((id) => typeof id === 'number')) return Uint32Array.from(prompt as number[]);
    return concatenated(
      prompt.map((one) =>
        Array.isArray(one) ? Uint32Array.from(one as number[]) : this.#framed(String(one), special !== false),
      ),
    );
  }

  /** Tokens of a chat completions body, as the model's template renders it. @throws UnreadablePrompt */
  chat(body: Body): Uint32Array {
    if (body.continue_final_message === true) throw new UnreadablePrompt('continue_final_message is not rendered here');
    const text = this.#rendered(body);
    return this.#framed(text, body.add_special_tokens === true);
  }

  #rendered(body: Body): string {
    const { messages, tools, documents, chat_template: own, chat_template_kwargs: extra } = body;
    if (!Array.isArray(messages)) throw new UnreadablePrompt('messages is no list');
    const template =
      typeof own === 'string'
        ? newTemplate(own)
        : (this.#templates.get(Array.isArray(tools) ? 'tool_use' : 'default') ?? this.#templates.get('default'));
    if (template === undefined) throw new UnreadablePrompt('the model has no chat template');
    return template.render({
      ...this.#specialNames(),
      ...(typeof extra === 'object' && extra !== null ? extra : {}),
      messages: messages.map(plainMessage),
      ...(Array.isArray(tools) ? { tools } : {}),
      ...(Array.isArray(documents) ? { documents } : {}),
      add_generation_prompt: body.add_generation_prompt ?? true,
    });
  }

  /** `bos_token` and similar names, for templates. */
  #specialNames(): Readonly<Record<string, string>> {
    const named = Object.entries(this.#config).flatMap(([name, value]) => {
      if (!name.endsWith('_token')) return [];
      const text = typeof value === 'string' ? value : (value as { content?: unknown } | null)?.content;
      return typeof text === 'string' ? [[name, text] as const] : [];
    });
    return Object.fromEntries(named);
  }

  #framed(text: string, special: boolean): Uint32Array {
    if (!special) return this.#ids(text);
    if (this.#frame === undefined) return this.#encoded(text, true);
    return concatenated([Uint32Array.from(this.#frame.before), this.#ids(text), Uint32Array.from(this.#frame.behind)]);
  }

  #ids(text: string): Uint32Array {
    return this.#cut === undefined ? this.#encoded(text, false) : this.#pieces(text, this.#cut);
  }

  #pieces(text: string, cut: RegExp): Uint32Array {
    const make = (piece: string) => this.#encoded(piece, false);
    // The expression has one group, so split() keeps the special tokens between the pieces.
    const parts = text.split(cut).filter((piece) => piece !== '');
    return concatenated(
      parts.map((piece) => {
        const special = this.#special.get(piece);
        if (special !== undefined) return Uint32Array.of(special);
        return piece.length < REMEMBERED_CHARACTERS ? make(piece) : this.#cache.ids(piece, make);
      }),
    );
  }

  #encoded(text: string, special: boolean): Uint32Array {
    return Uint32Array.from(this.#tokenizer.encode(text, { add_special_tokens: special }).ids);
  }

  /** The expression that finds special tokens; undefined when cutting there gives other ids than the whole text. */
  #cutsAtSpecialTokens(): RegExp | undefined {
    const tokens = [...this.#special.keys()].sort((a, b) => b.length - a.length);
    if (tokens.length === 0) return undefined;
    const cut = new RegExp(`(${tokens.map((token) => token.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|')})`, 'u');
    const [one, other] = [tokens[0]!, tokens.at(-1)!];
    const trial = `Two  words${one}\nuser text, one line ${other} and\n\n more${one}${other}  end `;
    const whole = this.#encoded(trial, false);
    const pieces = this.#pieces(trial, cut);
    return whole.length === pieces.length && whole.every((id, index) => id === pieces[index]) ? cut : undefined;
  }

  #findFrame(): { readonly before: readonly number[]; readonly behind: readonly number[] } | undefined {
    const plain = [...this.#encoded('word', false)];
    const framed = [...this.#encoded('word', true)];
    for (let at = 0; at + plain.length <= framed.length; at++) {
      if (!plain.every((id, index) => framed[at + index] === id)) continue;
      return { before: framed.slice(0, at), behind: framed.slice(at + plain.length) };
    }
    return undefined;
  }
}

/** Added tokens that are found in a text regardless of the characters around them. */
function specialTokens(tokenizer: Tokenizers.Tokenizer): ReadonlyMap<string, number> {
  const found = [...tokenizer.get_added_tokens_decoder()].filter(
    ([, token]) => !token.lstrip && !token.rstrip && !token.single_word && !token.normalized,
  );
  return new Map(found.map(([id, { content }]) => [content, id]));
}

function templatesOf(
  config: Readonly<Record<string, unknown>>,
  file: string | undefined,
): ReadonlyMap<string, Jinja.Template> {
  const given: unknown = file ?? config.chat_template;
  if (typeof given === 'string') return new Map([['default', newTemplate(given)]]);
  if (!Array.isArray(given)) return new Map();
  const named = given as readonly { readonly name: string; readonly template: string }[];
  return new Map(named.map(({ name, template }) => [name, newTemplate(template)]));
}

/**
 * Joins the text parts of a message, as vLLM does. @throws UnreadablePrompt for other parts, whose placeholders only
 * the engine knows
 */
function plainMessage(message: unknown): unknown {
  const { content } = (message ?? {}) as { readonly content?: unknown };
  if (!Array.isArray(content)) return message;
  const texts = content.map((part: unknown) => {
    const { text } = (part ?? {}) as { readonly text?: unknown };
    if (typeof text !== 'string') throw new UnreadablePrompt('a message has a part that is no text');
    return text;
  });
  return { ...(message as object), content: texts.join('\n') };
}

function concatenated(pieces: readonly Uint32Array[]): Uint32Array {
  const ids = new Uint32Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    ids.set(piece, at);
    at += piece.length;
  }
  return ids;
}

const USE = "the model's own tokenisers";

function newTokenizer(...given: ConstructorParameters<typeof Tokenizers.Tokenizer>): Tokenizers.Tokenizer {
  return new (optionalPackage<typeof Tokenizers>('@huggingface/tokenizers', USE).Tokenizer)(...given);
}

function newTemplate(text: string): Jinja.Template {
  return new (optionalPackage<typeof Jinja>('@huggingface/jinja', USE).Template)(text);
}
