import { errorText } from './error-text.js';
import type { Kind } from './kinds.js';
import type { WatchEvent } from './watch-stream.js';

/** Reason why an object was left out, in words that name the field and the remedy. */
export class ObjectProblem {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export interface ObjectCopyOptions<Value> {
  readonly kind: Kind;
  /** Reduces an object to its kept fields. */
  readonly read: (object: unknown) => Value | ObjectProblem;
  readonly report: (problem: string) => void;
}

/** Kept part of an object, and the version that it was read from. */
export interface Kept<Value> {
  readonly version: string;
  readonly value: Value;
}

interface Metadata {
  readonly uid?: string;
  readonly name?: string;
  readonly resourceVersion?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Bound on the objects of one kind. */
const OBJECTS_MAX = 100_000;

/** A first state that is being collected. */
export class FirstState<Value> {
  readonly objects = new Map<string, Kept<Value>>();
  /** Objects that were left out: UID → version. */
  readonly rejected = new Map<string, string>();
}

/** Kept parts of the objects of one kind, by UID, since an object may be made again under its old name. */
export class ObjectCopy<Value> {
  readonly #options: ObjectCopyOptions<Value>;
  #objects = new Map<string, Kept<Value>>();
  /** Objects that were left out: UID → version. */
  #rejected = new Map<string, string>();
  #tooMany = false;

  constructor(options: ObjectCopyOptions<Value>) {
    this.#options = options;
  }

  get size(): number {
    return this.#objects.size;
  }

  get rejected(): number {
    return this.#rejected.size;
  }

  values(): Value[] {
    return [...this.#objects.values()].map(({ value }) => value);
  }

  /** Adds to a first state that is not complete yet. */
  collect(type: WatchEvent['type'], object: unknown, first: FirstState<Value>): void {
    const { uid } = metadataOf(object);
    if (type === 'DELETED') {
      if (uid !== undefined) first.objects.delete(uid);
      return;
    }
    const kept = this.#read(object, first.objects.size, first.rejected);
    if (kept !== undefined) first.objects.set(uid!, kept);
  }

  /** Applies a change to the copy. */
  apply(type: WatchEvent['type'], object: unknown, batch: Batch<Value>): void {
    const { uid } = metadataOf(object);
    const before = uid === undefined ? undefined : this.#objects.get(uid);
    if (type === 'DELETED') {
      if (uid !== undefined) this.#rejected.delete(uid);
      if (before === undefined) return;
      this.#objects.delete(uid!);
      batch.remove(before.value);
      return;
    }
    const kept = this.#read(object, before === undefined ? this.#objects.size : 0, this.#rejected);
    if (kept === undefined) {
      if (before === undefined) return;
      this.#objects.delete(uid!);
      batch.remove(before.value);
    } else if (before?.version !== kept.version) {
      this.#objects.set(uid!, kept);
      batch.set(kept.value, before?.value);
    }
  }

  /** Kept part of an object; undefined = none, which was reported once per UID and version. */
  #read(object: unknown, others: number, rejected: Map<string, string>): Kept<Value> | undefined {
    const { kind, read, report } = this.#options;
    const { uid, name, resourceVersion: version } = metadataOf(object);
    if (uid === undefined || version === undefined) {
      report(`${kind.name} ${name ?? 'without a name'} is left out: metadata.uid and resourceVersion are missing`);
      return undefined;
    }
    if (others >= OBJECTS_MAX) {
      if (!this.#tooMany) report(`more than ${OBJECTS_MAX} objects of kind ${kind.name}: the rest is left out`);
      this.#tooMany = true;
      return undefined;
    }
    const value = readSafely(read, object);
    if (!(value instanceof ObjectProblem)) {
      rejected.delete(uid);
      return { version, value };
    }
    if (this.#rejected.get(uid) !== version) report(`${kind.name} ${name}: ${value.text}; the object is left out`);
    rejected.set(uid, version);
    return undefined;
  }

  /** Puts a complete first state in the place of the copy. */
  swap({ objects, rejected }: FirstState<Value>, batch: Batch<Value>): void {
    for (const [uid, { value }] of this.#objects) if (!objects.has(uid)) batch.remove(value);
    for (const [uid, { version, value }] of objects) {
      const before = this.#objects.get(uid);
      if (before?.version !== version) batch.set(value, before?.value);
    }
    this.#objects = objects;
    this.#rejected = rejected;
  }
}

/** Changes that are told together: the last value of each object counts. */
export class Batch<Value> {
  /** Whether to tell of the first state also when nothing changed, because it is complete. */
  tell = false;
  readonly #set = new Set<Value>();
  readonly #removed = new Set<Value>();

  set(value: Value, before: Value | undefined): void {
    if (before !== undefined) this.#set.delete(before);
    this.#set.add(value);
  }

  remove(value: Value): void {
    this.#set.delete(value);
    this.#removed.add(value);
  }

  get empty(): boolean {
    return this.#set.size === 0 && this.#removed.size === 0;
  }

  get changes(): Value[] {
    return [...this.#set];
  }

  get removals(): Value[] {
    return [...this.#removed];
  }
}

export function metadataOf(object: unknown): Metadata {
  return (object as { metadata?: Metadata } | null)?.metadata ?? {};
}

/** What `read` makes of an object; an exception is a problem of the object. */
export function readSafely<Value>(
  read: (object: unknown) => Value | ObjectProblem,
  object: unknown,
): Value | ObjectProblem {
  try {
    return read(object);
  } catch (error) {
    return new ObjectProblem(`cannot be read: ${errorText(error)}`);
  }
}
