import { dirname, resolve } from 'node:path';
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  parseDocument,
  type YAMLMap,
} from 'yaml';
import { errorMessage } from '../runtime/error-message.js';
import { ConfigurationError, type Place } from './error.js';

/** Keys and list positions from the top of a document to one of its values. */
export type Path = readonly (string | number)[];

/** A Kubernetes ConfigMap cannot hold more either. */
const LENGTH_MAX = 1_048_576;

/** `plugins[0].parameters.threshold` */
export function pathText(path: Path): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`),
    '',
  );
}

/** A YAML or JSON document that remembers where its values stand. */
export class ConfigurationDocument {
  /** The document as plain data; keys without a value are undefined, as if they were not there. */
  readonly data: unknown;
  /** Folder from which relative paths in the document count. */
  readonly folder: string;
  readonly #source: string;
  readonly #lines = new LineCounter();
  readonly #root: Node | null;
  readonly #moved: { readonly from: Path; readonly to: Path }[] = [];

  /** Throws ConfigurationError when the text is not one YAML or JSON document. `source` names it in messages. */
  constructor(text: string, source: string, folder = process.cwd()) {
    this.#source = source;
    this.folder = folder;
    if (text.length > LENGTH_MAX) {
      throw new ConfigurationError(`longer than ${LENGTH_MAX} characters`, { source, line: 1, column: 1 });
    }
    const document = this.#parsed(text);
    const problem = document.errors[0];
    if (problem !== undefined) {
      throw new ConfigurationError(`not valid YAML or JSON: ${problem.message}`, this.#place(problem.pos[0]));
    }
    this.#root = document.contents;
    this.data = this.#guarded(() => withoutNulls(document.toJS()));
  }

  /** A document that was read from a file: relative paths count from the file's folder. */
  static ofFile(text: string, file: string): ConfigurationDocument {
    return new ConfigurationDocument(text, file, dirname(resolve(file)));
  }

  /** The one document of the text. Empty ones may follow: templates end files with `---`. */
  #parsed(text: string): Document.Parsed {
    const all = this.#guarded(() => parseAllDocuments(text, { lineCounter: this.#lines, prettyErrors: false }));
    const [first, ...others] = Array.isArray(all) ? all : [];
    const second = others.find(({ contents, errors }) => !isEmpty(contents) || errors.length > 0);
    if (second !== undefined) {
      const place = this.#place(second.contents?.range?.[0] ?? second.range[0]);
      throw new ConfigurationError('a second document begins here: keep one', place);
    }
    return first ?? this.#guarded(() => parseDocument(text, { lineCounter: this.#lines, prettyErrors: false }));
  }

  /** Parsing and conversion walk down the values; only absurd depth, or an alias in its own anchor, has no end. */
  #guarded<Result>(walk: () => Result): Result {
    try {
      return walk();
    } catch (error) {
      const reason = error instanceof RangeError ? 'values are nested too deeply' : errorMessage(error);
      throw new ConfigurationError(`not usable: ${reason}`, { source: this.#source, line: 1, column: 1 });
    }
  }

  /** Notes that the value at `from` is at `to` in the other version of the document. */
  moved(from: Path, to: Path): void {
    if (this.#written(to) === to) this.#moved.push({ from, to });
  }

  /** The path in the document of what is known at `path`. */
  #written(path: Path): Path {
    const found = this.#moved.find(({ to }) => to.every((part, index) => part === path[index]));
    return found === undefined ? path : [...found.from, ...path.slice(found.to.length)];
  }

  /**
   * An error about the value at `path`, or about the key itself. A value that is missing is reported where the nearest
   * thing around it begins.
   */
  error(known: Path, message: string, about: 'value' | 'key' = 'value'): ConfigurationError {
    const path = this.#written(known);
    return new ConfigurationError(message, this.#place(this.#offset(path, about)), pathText(path));
  }

  /** A warning about the value at `path`, in the form of an error's message. */
  warning(path: Path, message: string): string {
    return this.error(path, message).message;
  }

  #place(offset: number): Place {
    const { line, col } = this.#lines.linePos(offset);
    return { source: this.#source, line: Math.max(1, line), column: Math.max(1, col) };
  }

  #offset(path: Path, about: 'value' | 'key'): number {
    let node = this.#root;
    let offset = node?.range?.[0] ?? 0;
    for (const [depth, part] of path.entries()) {
      if (isMap(node)) {
        const pair = pairOf(node, String(part));
        if (pair === undefined) return offset;
        if (about === 'key' && depth === path.length - 1) return pair.key.range?.[0] ?? offset;
        node = isNode(pair.value) ? pair.value : null;
        offset = node?.range?.[0] ?? pair.key.range?.[0] ?? offset;
      } else if (isSeq(node)) {
        const item = node.items[Number(part)];
        if (!isNode(item)) return offset;
        node = item;
        offset = node.range?.[0] ?? offset;
      } else if (isAlias(node)) {
        return offset;
      }
    }
    return offset;
  }
}

function isEmpty(contents: Node | null): boolean {
  return contents === null || (isScalar(contents) && contents.value === null);
}

function pairOf(map: YAMLMap, key: string): { key: Node; value: unknown } | undefined {
  for (const pair of map.items) {
    if (isScalar(pair.key) && String(pair.key.value) === key) return { key: pair.key, value: pair.value };
  }
  return undefined;
}

/** Values of null become undefined: `parameters:` with nothing behind it means the same as no `parameters` at all. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item));
  if (value === null || typeof value !== 'object') return value ?? undefined;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutNulls(item)]));
}
