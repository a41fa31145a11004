import { Reflector, type ReflectorOptions, type ReflectorState } from '../../../kubernetes/reflector.js';

/** Values that are new or differ, and values that are gone. */
export interface ValueChange<Value> {
  readonly set: readonly Value[];
  readonly removed: readonly Value[];
}

/** The objects of one subject, whose kind or selection may change: the old ones count until the new first state is complete. */
export class Followed<Value> {
  readonly #changed: (urgent: boolean, change: ValueChange<Value> | undefined) => void;
  readonly #isUrgent: (value: Value) => boolean;
  #current: Reflector<Value> | undefined;
  #next: Reflector<Value> | undefined;
  #decided = false;

  /**
   * @param changed told of every change, and whether it has to take effect at once; undefined = all values are others
   * @param isUrgent whether a changed value has to take effect at once; a removal always has to
   */
  constructor(
    changed: (urgent: boolean, change: ValueChange<Value> | undefined) => void,
    isUrgent: (value: Value) => boolean = () => false,
  ) {
    this.#changed = changed;
    this.#isUrgent = isUrgent;
  }

  /** Follows other objects from now on; undefined = none. */
  follow(options: Omit<ReflectorOptions<Value>, 'changed'> | undefined): void {
    this.#decided = true;
    this.#next?.stop();
    this.#next = undefined;
    if (options === undefined) {
      this.#current?.stop();
      this.#current = undefined;
      this.#changed(true, undefined);
      return;
    }
    const reflector: Reflector<Value> = new Reflector({
      ...options,
      changed: (set, removed) => {
        const replaces = reflector === this.#next;
        if (replaces) this.#replace();
        if (reflector !== this.#current) return;
        const urgent = removed.length > 0 || set.some(this.#isUrgent);
        this.#changed(urgent, replaces ? undefined : { set, removed });
      },
    });
    if (this.#current === undefined) this.#current = reflector;
    else this.#next = reflector;
    reflector.start();
  }

  stop(): void {
    this.#current?.stop();
    this.#next?.stop();
  }

  values(): Value[] {
    return this.#current?.values() ?? [];
  }

  /** Its objects are known, or it is known that there are none. */
  get synced(): boolean {
    return this.#decided && (this.#current === undefined || this.#current.synced);
  }

  /** As `synced`, or the API server does not allow to read them. */
  get settled(): boolean {
    return this.synced || this.#current?.state === 'forbidden';
  }

  get state(): ReflectorState | undefined {
    return this.#current?.state;
  }

  get reflector(): Reflector<Value> | undefined {
    return this.#current;
  }

  #replace(): void {
    this.#current?.stop();
    this.#current = this.#next;
    this.#next = undefined;
  }
}
