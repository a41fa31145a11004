import type { Kind } from './kinds.js';
import { metadataOf, ObjectProblem, readSafely } from './object-copy.js';
import { Reflector, type ReflectorOptions, type ReflectorState } from './reflector.js';

/** An object of a kind, with what its selections look at. */
interface SharedObject<Value> {
  readonly uid: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: Value | ObjectProblem;
}

type SelectionOptions<Value> = Omit<ReflectorOptions<Value>, 'client' | 'counts'>;

/** One watch of all objects of a kind in a namespace. It runs while it has followers. */
export class SharedReflector<Value> {
  readonly #reflector: Reflector<SharedObject<Value>>;
  readonly #selections = new Set<SelectedObjects<Value>>();
  readonly #ended: () => void;
  /** The last report on the kind as a whole, which a later selection has not heard. */
  #lastReport = '';

  /** @param ended called when the last selection has left; the watch is not used again */
  constructor(options: ReflectorOptions<Value>, ended: () => void) {
    this.#ended = ended;
    const { name: _name, labels: _labels, read, ...rest } = options;
    this.#reflector = new Reflector<SharedObject<Value>>({
      ...rest,
      read: (object) => {
        const { uid = '', name = '', labels = {} } = metadataOf(object);
        // An object with a problem is kept: only the selections that it belongs to leave it out and report it.
        return { uid, name, labels, value: readSafely(read, object) };
      },
      changed: (set, removed) => this.#each((selection) => selection.take(set, removed)),
      stateChanged: () => this.#each((selection) => selection.stateChanged()),
      report: (problem) => {
        this.#lastReport = problem;
        this.#each((selection) => selection.report(problem));
      },
    });
  }

  get state(): ReflectorState {
    return this.#reflector.state;
  }

  get synced(): boolean {
    return this.#reflector.synced;
  }

  get problem(): string {
    return this.#reflector.problem;
  }

  get silentMs(): number {
    return this.#reflector.silentMs;
  }

  /** Reason why the kind may not be read, as it was reported; empty when it may. */
  get refusal(): string {
    return this.state === 'forbidden' ? this.#lastReport : '';
  }

  objects(): SharedObject<Value>[] {
    return this.#reflector.values();
  }

  join(selection: SelectedObjects<Value>): void {
    this.#selections.add(selection);
    if (this.#selections.size === 1) this.#reflector.start();
  }

  leave(selection: SelectedObjects<Value>): void {
    if (!this.#selections.delete(selection) || this.#selections.size > 0) return;
    this.#reflector.stop();
    this.#ended();
  }

  /** Calls each receiver. An exception of one keeps nothing from the others. */
  #each(tell: (selection: SelectedObjects<Value>) => void): void {
    for (const selection of [...this.#selections]) {
      try {
        tell(selection);
      } catch (error) {
        selection.report(`unexpected: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }
}

/** The objects of a shared watch that one follower selects, as if the watch were its own. */
export class SelectedObjects<Value> {
  readonly #options: SelectionOptions<Value>;
  readonly #open: () => SharedReflector<Value>;
  readonly #objects = new Map<string, Value>();
  /** UIDs of selected objects that cannot be read. */
  readonly #rejected = new Set<string>();
  #shared: SharedReflector<Value> | undefined;
  /** Whether it has what the watch knew when it joined. */
  #caughtUp = false;
  #synced = false;
  #stopped = false;

  /** @param open the watch of its kind and namespace */
  constructor(options: SelectionOptions<Value>, open: () => SharedReflector<Value>) {
    this.#options = options;
    this.#open = open;
  }

  get kind(): Kind {
    return this.#options.kind;
  }

  get state(): ReflectorState {
    return this.#shared?.state ?? 'probing';
  }

  get synced(): boolean {
    return this.#synced;
  }

  get problem(): string {
    return this.#shared?.problem ?? '';
  }

  get silentMs(): number {
    return this.#shared?.silentMs ?? 0;
  }

  get rejected(): number {
    return this.#rejected.size;
  }

  get size(): number {
    return this.#objects.size;
  }

  values(): Value[] {
    return [...this.#objects.values()];
  }

  start(): void {
    this.#shared = this.#open();
    this.#shared.join(this);
    // As late as an answer of the server would be: the follower may not have ended its own start.
    queueMicrotask(() => this.#catchUp());
  }

  stop(): void {
    this.#stopped = true;
    this.#shared?.leave(this);
  }

  /** Takes over changes of the shared objects. */
  take(set: readonly SharedObject<Value>[], removed: readonly SharedObject<Value>[]): void {
    if (!this.#caughtUp || this.#stopped) return;
    const values: Value[] = [];
    const gone: Value[] = [];
    for (const { uid } of removed) this.#drop(uid, gone);
    for (const object of set) {
      const { uid, name, value } = object;
      if (this.#selects(object) && !(value instanceof ObjectProblem)) {
        this.#rejected.delete(uid);
        this.#objects.set(uid, value);
        values.push(value);
        continue;
      }
      this.#drop(uid, gone);
      if (this.#selects(object)) this.#reject(uid, name, value as ObjectProblem);
    }
    const isFirst = !this.#synced;
    this.#synced = true;
    if (isFirst || values.length > 0 || gone.length > 0) this.#options.changed(values, gone);
  }

  stateChanged(): void {
    if (this.#caughtUp && !this.#stopped) this.#options.stateChanged?.();
  }

  report(problem: string): void {
    if (!this.#stopped) this.#options.report(problem);
  }

  #catchUp(): void {
    const shared = this.#shared!;
    this.#caughtUp = true;
    if (this.#stopped) return;
    if (shared.refusal !== '') this.report(shared.refusal);
    this.stateChanged();
    if (shared.synced) this.take(shared.objects(), []);
  }

  #selects({ name, labels }: SharedObject<Value>): boolean {
    const { name: only, labels: selected } = this.#options;
    return (only === undefined || name === only) && (selected === undefined || selected.accepts(labels));
  }

  #reject(uid: string, name: string, { text }: ObjectProblem): void {
    this.#rejected.add(uid);
    this.report(`${this.kind.name} ${name}: ${text}; the object is left out`);
  }

  #drop(uid: string, gone: Value[]): void {
    this.#rejected.delete(uid);
    const value = this.#objects.get(uid);
    if (value === undefined) return;
    this.#objects.delete(uid);
    gone.push(value);
  }
}
