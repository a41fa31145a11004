import type { ReflectorState } from '../../../kubernetes/reflector.js';
import type { Watch, Watches, WatchOptions } from '../../../kubernetes/watches.js';

/** Values that are new or differ, and values that are gone. */
export interface ValueChange<Value> {
  readonly set: readonly Value[];
  readonly removed: readonly Value[];
}

/**
 * The objects of one subject, whose kind or selection may change: the old ones count until the new first state is
 * complete.
 */
export class Followed<Value> {
  readonly #changed: (urgent: boolean, change: ValueChange<Value> | undefined) => void;
  readonly #isUrgent: (value: Value) => boolean;
  readonly #watches: Watches;
  #current: Watch<Value> | undefined;
  #next: Watch<Value> | undefined;
  #decided = false;

  /**
   * @param changed told of every change, and whether it has to take effect at once; undefined = all values are others
   * @param isUrgent whether a changed value has to take effect at once; a removal always has to
   */
  constructor(
    watches: Watches,
    changed: (urgent: boolean, change: ValueChange<Value> | undefined) => void,
    isUrgent: (value: Value) => boolean = () => false,
  ) {
    this.#watches = watches;
    this.#changed = changed;
    this.#isUrgent = isUrgent;
  }

  /** Follows other objects from now on; undefined = none. */
  follow(options: Omit<WatchOptions<Value>, 'changed'> | undefined): void {
    this.#decided = true;
    this.#next?.stop();
    this.#next = undefined;
    if (options === undefined) {
      this.#current?.stop();
      this.#current = undefined;
      this.#changed(true, undefined);
      return;
    }
    const watch: Watch<Value> = this.#watches.follow<Value>({
      ...options,
      changed: (set, removed) => {
        const replaces = watch === this.#next;
        if (replaces) this.#replace();
        if (watch !== this.#current) return;
        const urgent = removed.length > 0 || set.some(this.#isUrgent);
        this.#changed(urgent, replaces ? undefined : { set, removed });
      },
    });
    if (this.#current === undefined) this.#current = watch;
    else this.#next = watch;
    watch.start();
  }

  stop(): void {
    this.#current?.stop();
    this.#next?.stop();
  }

  values(): Value[] {
    return this.#current?.values() ?? [];
  }

  /** Whether its objects are known, or the absence of any. */
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

  get watch(): Watch<Value> | undefined {
    return this.#current;
  }

  #replace(): void {
    this.#current?.stop();
    this.#current = this.#next;
    this.#next = undefined;
  }
}
