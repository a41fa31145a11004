// What a scan must find, worked out slowly: the body is parsed into a tree that keeps duplicate keys and byte ranges.
import {
  type ByteRange,
  type Medium,
  PromptKind,
  type RequestScanResult,
  type ScanFlaw,
} from '../../dist/src/core/types.js';
import { contentHash, requestChain } from './block-hash-reference.ts';

type Node = ByteRange & {
  readonly type: 'object' | 'array' | 'string' | 'number' | 'literal';
  /** Decoded bytes of a string. */
  readonly bytes?: Buffer;
  readonly entries?: ReadonlyArray<readonly [string, Node]>;
  readonly items?: readonly Node[];
};

/** Tree of a body that JSON.parse accepts; every character of `text` is one byte. */
function parseTree(text: string): Node {
  let at = 0;
  const space = () => {
    while (' \t\n\r'.includes(text[at] ?? 'x')) at++;
  };
  const value = (): Node => {
    space();
    const start = at;
    if (text[at] === '{') return object(start);
    if (text[at] === '[') return array(start);
    if (text[at] === '"') return string();
    const [match] = /^[-+.\w]+/.exec(text.slice(at))!;
    at += match.length;
    return { type: /^[-\d]/.test(match) ? 'number' : 'literal', start, end: at };
  };
  const object = (start: number): Node => {
    const entries: Array<readonly [string, Node]> = [];
    at++;
    for (space(); text[at] !== '}'; space()) {
      if (text[at] === ',') at++;
      space();
      const key = string().bytes!.toString();
      space();
      at++;
      entries.push([key, value()]);
    }
    at++;
    return { type: 'object', start, end: at, entries };
  };
  const array = (start: number): Node => {
    const items: Node[] = [];
    at++;
    for (space(); text[at] !== ']'; space()) {
      if (text[at] === ',') at++;
      items.push(value());
    }
    at++;
    return { type: 'array', start, end: at, items };
  };
  const string = (): Node => {
    const start = at++;
    while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
    at++;
    return { type: 'string', start, end: at, bytes: decode(text.slice(start + 1, at - 1)) };
  };
  return value();
}

/** Decodes escapes; the other bytes stay as they are, valid UTF-8 or not. */
function decode(raw: string): Buffer {
  const plain = raw.replace(/(?:\\u[0-9a-fA-F]{4})+|\\./gs, (escapes) =>
    Buffer.from(JSON.parse(`"${escapes}"`)).toString('latin1'),
  );
  return Buffer.from(plain, 'latin1');
}

const promptKeys = ['prompt', 'messages', 'input', 'input', 'items', 'prompt', 'messages', 'token_ids', 'input_ids'];
const limitKeys: ReadonlyArray<readonly string[]> = [
  ['max_tokens'],
  ['max_completion_tokens', 'max_tokens'],
  ['max_output_tokens'],
  [],
  [],
  [],
  ['max_tokens'],
  ['max_tokens'],
  ['max_new_tokens'],
];

/** A part that says that it is no text. Good enough for random documents: none of their texts looks like one. */
const MEDIUM = /"type"\s*:\s*"(image|video|audio|image_url|video_url|audio_url|input_image|input_audio|input_video)"/;

export interface Expected {
  readonly result: RequestScanResult;
  readonly content: Buffer;
  readonly salt: Buffer | undefined;
  readonly tools: Buffer | undefined;
  readonly system: Buffer | undefined;
}

type Raw = (node: Node) => Buffer;

/** What a scan of `body`, which JSON.parse accepts, must find. */
export function expectedScan(kind: PromptKind, body: Buffer, seed: bigint): Expected {
  const tree = parseTree(body.toString('latin1'));
  const parsed = JSON.parse(body.toString()) as unknown;
  const isObject = tree.type === 'object';
  const fields = new Map(tree.entries ?? []);
  const raw: Raw = (node) => body.subarray(node.start, node.end);
  const present = (key: string) => {
    const node = fields.get(key);
    return node === undefined || raw(node).toString() === 'null' ? undefined : node;
  };
  const member = (key: string) => (isObject ? (parsed as Record<string, unknown>)[key] : undefined);
  const string = (key: string) => {
    const value = member(key);
    return typeof value === 'string' ? Buffer.from(value).toString() : undefined;
  };
  const prompt = present(promptKeys[kind]!);
  const content = prompt && promptContent(kind, prompt, raw, seed);
  const tools = present('tools');
  const system = present(kind === PromptKind.responses ? 'instructions' : 'system');
  const systemBytes = system && (kind === PromptKind.messages ? systemContent(system, raw) : raw(system));
  const model = string('model');
  const saltKey = kind === PromptKind.sglang ? 'extra_key' : 'cache_salt';
  const range = (node: Node | undefined) => node && { start: node.start, end: node.end };
  const sampling = member('sampling_params');
  const bounds = kind === PromptKind.tokens || kind === PromptKind.sglang ? plainObject(sampling) : plainObject(parsed);
  return {
    result: {
      model,
      modelRange: range(fields.get('model')),
      stream: member('stream') === true,
      maxOutputTokens: limitKeys[kind]!.map((key) => limit(bounds[key])).find(
        (value) => isObject && value !== undefined,
      ),
      promptRange: content && range(prompt),
      promptBytes: (content?.length ?? 0) + (tools ? tools.end - tools.start : 0) + (systemBytes?.length ?? 0),
      toolsRange: range(tools),
      templateRange: kind === PromptKind.chat ? range(fields.get('chat_template_kwargs')) : undefined,
      cacheSalt: string(saltKey),
      media: content === undefined ? [] : promptMedia(kind, prompt!, raw, seed),
      hasMedia: prompt !== undefined && MEDIUM.test(raw(prompt).toString()),
      isObject,
      flaw: expectedFlaw(),
    },
    content: content ?? Buffer.alloc(0),
    salt: string(saltKey) === undefined ? undefined : fields.get(saltKey)!.bytes,
    tools: tools && raw(tools),
    system: systemBytes,
  };

  function expectedFlaw(): ScanFlaw | undefined {
    if (prompt === undefined) return 'missing';
    if (content === undefined) return isEmpty(kind, prompt) ? 'empty' : 'shape';
    if (kind === PromptKind.messages && system !== undefined && !isSystem(system, raw)) return 'system';
    if (kind !== PromptKind.sglang) return undefined;
    if (present(saltKey) !== undefined && string(saltKey) === undefined) return 'salt';
    return typeof (member('stream') ?? false) === 'boolean' ? undefined : 'stream';
  }
}

/** A list or, where it may be one, a text without content. */
function isEmpty(kind: PromptKind, prompt: Node): boolean {
  if (prompt.type === 'array') return prompt.items!.length === 0 && kind !== PromptKind.images;
  const texts: readonly PromptKind[] = [PromptKind.completions, PromptKind.embeddings, PromptKind.images];
  return prompt.type === 'string' && prompt.bytes!.length === 0 && texts.includes(kind);
}

function plainObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

function limit(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value + 0 : undefined;
}

/** Content bytes of a prompt value, or undefined when its shape is not allowed. */
function promptContent(kind: PromptKind, prompt: Node, raw: Raw, seed: bigint): Buffer | undefined {
  if (kind === PromptKind.chat || kind === PromptKind.messages) {
    if (!prompt.items?.length || !prompt.items.every((item) => isMessage(kind, item, raw))) return undefined;
    return Buffer.concat(prompt.items.flatMap((message) => messageContent(kind, message, raw, seed)));
  }
  if (kind === PromptKind.tokens || kind === PromptKind.sglang) return tokenContent(prompt.items ?? [], raw);
  if (kind === PromptKind.completions || kind === PromptKind.images) {
    if (prompt.type === 'string') return prompt.bytes!.length > 0 ? prompt.bytes : undefined;
    return kind === PromptKind.completions ? listContent(prompt.items ?? [], raw) : undefined;
  }
  return rawPromptIsAllowed(kind, prompt) ? raw(prompt) : undefined;
}

function rawPromptIsAllowed(kind: PromptKind, prompt: Node): boolean {
  if (kind === PromptKind.responses) return true;
  if (prompt.type !== 'array' && (kind === PromptKind.conversations || prompt.type !== 'string')) return false;
  return prompt.end - prompt.start > 2;
}

function listContent(items: readonly Node[], raw: Raw): Buffer | undefined {
  if (items.length === 0) return undefined;
  if (items.every((item) => item.type === 'string')) return Buffer.concat(items.map((item) => item.bytes!));
  return tokenContent(items, raw);
}

function tokenContent(items: readonly Node[], raw: Raw): Buffer | undefined {
  if (items.length === 0) return undefined;
  const tokens = items.map((item) => raw(item).toString());
  if (!tokens.every((token) => /^\d+$/.test(token) && Number(token) <= 0xffffffff)) return undefined;
  return Buffer.concat(tokens.map((token) => words(Number(token), 1)));
}

function words(value: number, count: number): Buffer {
  return Buffer.concat(new Array(count).fill(Buffer.from(new Uint32Array([value]).buffer)));
}

/**
 * A message: its role is text, its content text or a list; of Anthropic's the list's elements are objects. There may be
 * a null among messages and among Anthropic's elements.
 */
function isMessage(kind: PromptKind, message: Node, raw: Raw): boolean {
  const anthropic = kind === PromptKind.messages;
  if (message.type !== 'object') return raw(message).toString() === 'null';
  return message.entries!.every(([key, value]) => {
    if ((key !== 'role' && key !== 'content') || raw(value).toString() === 'null' || value.type === 'string')
      return true;
    if (key === 'role' || value.type !== 'array') return false;
    return !anthropic || value.items!.every((item) => isObjectOrNull(item, raw));
  });
}

function messageContent(kind: PromptKind, message: Node, raw: Raw, seed: bigint): Buffer[] {
  return (message.entries ?? []).flatMap(([key, value]) => {
    if ((key !== 'role' && key !== 'content') || raw(value).toString() === 'null') return [];
    if (value.type === 'string') return [value.bytes!];
    return value.items!.flatMap((part) =>
      partContent(kind === PromptKind.messages ? 'source' : 'image_url', part, raw, seed),
    );
  });
}

function isObjectOrNull(item: Node, raw: Raw): boolean {
  return item.type === 'object' || raw(item).toString() === 'null';
}

function partContent(image: string | undefined, part: Node, raw: Raw, seed: bigint): Buffer[] {
  if (part.type !== 'object') return image === 'source' ? [] : [raw(part)];
  return part.entries!.flatMap(([key, value]) => {
    if (key === 'type' || key === 'cache_control' || raw(value).toString() === 'null') return [];
    if (key === 'text' && value.type === 'string') return [value.bytes!];
    if (key === image) return [words(Number(contentHash(seed, raw(value)) & 0xffffffffn), 225)];
    return [raw(value)];
  });
}

const MEDIA: Readonly<Record<string, Medium['modality']>> = {
  image_url: 'image',
  video_url: 'video',
  audio_url: 'audio',
  input_audio: 'audio',
};

/** Different media of the prompt, at most 32. */
function promptMedia(kind: PromptKind, prompt: Node, raw: Raw, seed: bigint): Medium[] {
  if (kind !== PromptKind.chat && kind !== PromptKind.messages) return [];
  const found = new Map<bigint, Medium>();
  for (const message of prompt.items!) {
    for (const [name, content] of message.entries ?? []) {
      if (name !== 'content') continue;
      for (const [key, value] of (content.items ?? []).flatMap((part) => part.entries ?? [])) {
        const modality = kind === PromptKind.chat ? MEDIA[key] : key === 'source' ? 'image' : undefined;
        if (modality === undefined || raw(value).toString() === 'null') continue;
        const hash = contentHash(seed, raw(value));
        if (!found.has(hash) && found.size < 32) found.set(hash, { hash, modality });
      }
    }
  }
  return [...found.values()];
}

function isSystem(system: Node, raw: Raw): boolean {
  return (
    system.type === 'string' || (system.type === 'array' && system.items!.every((item) => isObjectOrNull(item, raw)))
  );
}

/** The texts of Anthropic's `system`, without the client's notice. */
function systemContent(system: Node, raw: Raw): Buffer {
  const kept = (text: Buffer) => (text.toString('latin1').startsWith('x-anthropic-billing-header') ? [] : [text]);
  if (system.type === 'string') return Buffer.concat(kept(system.bytes!));
  const parts = (system.items ?? []).filter((item) => item.type === 'object');
  return Buffer.concat(
    parts.flatMap((part) =>
      part.entries!.flatMap(([key, value]) => {
        if (key === 'text' && value.type === 'string') return kept(value.bytes!);
        return partContent(undefined, { ...part, entries: [[key, value]] }, raw, 0n);
      }),
    ),
  );
}

/** Chain hashes that a scan with these findings must write. */
export function expectedChain(seed: bigint, expected: Expected, model: string, blockBytes: number): bigint[] {
  return requestChain(seed, { ...expected, model }, blockBytes);
}
