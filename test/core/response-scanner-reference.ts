import { AnswerForm, type Usage } from '../../dist/src/core/types.js';

/** What an answer should come out as, worked out from the whole of it at once. */
export interface ReferenceAnswer {
  readonly output: Buffer;
  readonly usage: Usage;
  readonly events: number;
}

type Json = { [key: string]: Json } | Json[] | string | number | boolean | null;
type Member = readonly [key: string, value: Node];
type Node = { readonly object: readonly Member[] } | { readonly array: readonly Node[] } | { readonly scalar: Json };

const scalarPattern = /true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const stringPattern = /"(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const levels = 127;

/** A strict recursive JSON parser over text in which one character is one byte (latin1). */
class Parser {
  readonly text: string;
  readonly onString: (path: readonly string[], start: number, end: number) => void;
  at = 0;

  constructor(text: string, onString: Parser['onString']) {
    this.text = text;
    this.onString = onString;
  }

  document(): Node {
    const node = this.value([]);
    this.space();
    if (this.at < this.text.length) throw new SyntaxError('text after the document');
    return node;
  }

  private space(): void {
    while (' \t\r\n'.includes(this.text[this.at] ?? 'x')) this.at++;
  }

  private token(pattern: RegExp): string {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (!found) throw new SyntaxError(`unexpected byte at ${this.at}`);
    this.at += found[0].length;
    return found[0];
  }

  private decoded(raw: string): string {
    return JSON.parse(Buffer.from(raw, 'latin1').toString('utf8')) as string;
  }

  private value(path: readonly string[]): Node {
    this.space();
    const c = this.text[this.at];
    if (c === '{' || c === '[') {
      if (path.length === levels) throw new SyntaxError('too deep');
      return c === '{' ? { object: this.members(path) } : { array: this.items(path) };
    }
    const start = this.at;
    if (c !== '"') return { scalar: JSON.parse(this.token(scalarPattern)) as Json };
    const raw = this.token(stringPattern);
    this.onString(path, start, this.at);
    return { scalar: this.decoded(raw) };
  }

  private list<T>(close: string, item: () => T): T[] {
    const items: T[] = [];
    this.at++;
    this.space();
    if (this.text[this.at] === close) {
      this.at++;
      return items;
    }
    for (;;) {
      items.push(item());
      this.space();
      const c = this.text[this.at++];
      if (c === close) return items;
      if (c !== ',') throw new SyntaxError('neither a comma nor an end');
    }
  }

  private items(path: readonly string[]): Node[] {
    return this.list(']', () => this.value([...path, '[]']));
  }

  private members(path: readonly string[]): Member[] {
    return this.list('}', () => {
      this.space();
      const key = this.decoded(this.token(stringPattern));
      this.space();
      if (this.text[this.at++] !== ':') throw new SyntaxError('no colon');
      return [key, this.value([...path, `.${key}`])] as const;
    });
  }
}

const unknown: Usage = { promptTokens: -1, completionTokens: -1, totalTokens: -1, cachedTokens: -1 };

function count(node: Node): number {
  if (!('scalar' in node)) return -1;
  const { scalar } = node;
  if (typeof scalar === 'string') return /^[0-9]+$/.test(scalar) && Number(scalar) < 2 ** 53 ? Number(scalar) : -1;
  return typeof scalar === 'number' && !Object.is(scalar, -0) && scalar >= 0 && scalar < 2 ** 53
    ? Math.trunc(scalar)
    : -1;
}

function plainBlock(members: readonly Member[]): Usage {
  const found = { ...unknown };
  for (const [key, value] of members) {
    const n = count(value);
    if (/^(prompt|input)_tokens_details$/.test(key) && 'object' in value) {
      for (const [inner, cached] of value.object) {
        if (inner === 'cached_tokens' && count(cached) >= 0) found.cachedTokens = count(cached);
      }
    }
    if (n < 0) continue;
    if (/^(prompt|input)_tokens$/.test(key)) found.promptTokens = n;
    if (/^(completion|output)_tokens$/.test(key)) found.completionTokens = n;
    if (key === 'total_tokens') found.totalTokens = n;
  }
  return found;
}

function merge(old: Usage, add: Usage): Usage {
  const later = (a: number, b: number) => (b > 0 || (b === 0 && a < 0) ? b : a);
  const merged = {
    promptTokens: later(old.promptTokens, add.promptTokens),
    completionTokens: later(old.completionTokens, add.completionTokens),
    totalTokens: old.totalTokens,
    cachedTokens: later(old.cachedTokens, add.cachedTokens),
  };
  if (add.promptTokens >= 0 && add.completionTokens >= 0 && add.totalTokens > 0) merged.totalTokens = add.totalTokens;
  else if (merged.promptTokens < 0 && merged.completionTokens < 0)
    merged.totalTokens = later(old.totalTokens, add.totalTokens);
  else merged.totalTokens = Math.max(0, merged.promptTokens) + Math.max(0, merged.completionTokens);
  return merged;
}

/** What a document says, in an answer of this form. */
function usageIn(node: Node, before: Usage, form: AnswerForm, streaming: boolean): Usage {
  if (!('object' in node)) return before;
  let usage = before;
  let inResponse = false;
  let completed = false;
  for (const [key, value] of node.object) {
    if (key === 'type' && 'scalar' in value && typeof value.scalar === 'string') {
      completed = value.scalar === 'response.completed';
    }
    if (!('object' in value)) continue;
    if (form === AnswerForm.sglang) {
      if (key === 'meta_info' && (!streaming || hasFinished(value.object)))
        usage = merge(usage, metaBlock(value.object));
      continue;
    }
    if (key === 'usage' && !(form === AnswerForm.responses && streaming)) usage = merge(usage, block(value.object));
    const inMessage = key === 'message' && form === AnswerForm.messages;
    if (key !== 'response' && !inMessage) continue;
    for (const [inner, told] of value.object) {
      if (inner !== 'usage' || !('object' in told)) continue;
      inResponse ||= !inMessage;
      usage = merge(usage, { ...block(told.object), ...(inMessage ? { completionTokens: -1 } : {}) });
    }
  }
  return inResponse && !completed ? before : usage;

  function block(members: readonly Member[]): Usage {
    const found = plainBlock(members);
    for (const [key, value] of form === AnswerForm.messages ? members : []) {
      if ((key === 'cache_read_input_tokens' || isDetails(key, value)) && lastCached(key, value) >= 0) {
        found.cachedTokens = lastCached(key, value);
      }
    }
    return found;
  }
}

function isDetails(key: string, value: Node): boolean {
  return /^(prompt|input)_tokens_details$/.test(key) && 'object' in value;
}

function lastCached(key: string, value: Node): number {
  if (!isDetails(key, value) || !('object' in value)) return count(value);
  return value.object.reduce((last, [inner, told]) => {
    return inner === 'cached_tokens' && count(told) >= 0 ? count(told) : last;
  }, -1);
}

function hasFinished(members: readonly Member[]): boolean {
  return members.some(
    ([key, value]) =>
      key === 'finish_reason' && ('object' in value || ('scalar' in value && typeof value.scalar === 'string')),
  );
}

/** Counts of SGLang, the cached ones beside the others. */
function metaBlock(members: readonly Member[]): Usage {
  const cached = members.reduce((last, [key, value]) => {
    return key === 'cached_tokens' && count(value) >= 0 ? count(value) : last;
  }, -1);
  return { ...plainBlock(members), cachedTokens: cached };
}

/** One document: its bytes with the name changed, and the usage after it. */
function readDocument(
  text: string,
  from: string | undefined,
  to: string,
  tell: (node: Node) => Usage,
  before: Usage,
): [string, Usage] {
  let output = '';
  let copied = 0;
  const parser = new Parser(text, (path, start, end) => {
    const place = path.join('');
    if (place !== '.model' && place !== '.response.model' && place !== '.message.model') return;
    if (path.length !== place.split('.').length - 1) return;
    if (JSON.parse(Buffer.from(text.slice(start, end), 'latin1').toString('utf8')) !== from) return;
    output += text.slice(copied, start) + Buffer.from(JSON.stringify(to)).toString('latin1');
    copied = end;
  });
  let after = before;
  try {
    after = tell(parser.document());
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return [output + text.slice(copied), after];
}

/** The reference: what a scanner that sees the whole answer at once would do. */
export function referenceAnswer(
  answer: Buffer,
  streaming: boolean,
  form: AnswerForm,
  from?: string,
  to = '',
): ReferenceAnswer {
  const text = answer.toString('latin1');
  if (!streaming) {
    const tell = (node: Node) => usageIn(node, unknown, form, false);
    const [output, usage] = readDocument(text, from, to, tell, unknown);
    return { output: Buffer.from(output, 'latin1'), usage, events: 0 };
  }
  let usage = unknown;
  let events = 0;
  const lines = text.split(/([\r\n])/).map((line) => {
    if (!line.startsWith('data:')) return line;
    if (/^[ \t]*\[DONE\][ \t]*$/.test(line.slice(5))) return line;
    events++;
    const tell = (node: Node) => usageIn(node, usage, form, true);
    const [output, after] = readDocument(line.slice(5), from, to, tell, usage);
    usage = after;
    return `data:${output}`;
  });
  return { output: Buffer.from(lines.join(''), 'latin1'), usage, events };
}
