import { Reflector, type ReflectorOptions, type ReflectorState } from '../../../kubernetes/reflector.js';

/** The objects of one subject, whose kind or selection may change: the old ones count until the new first state is complete. */
export class Followed<Value> {
  readonly #changed: (urgent: boolean) => void;
  readonly #isUrgent: (value: Value) => boolean;
  #current: Reflector<Value> | undefined;
  #next: Reflector<Value> | undefined;
  #decided = false;

  /**
   * @param changed told of every change, and whether it has to take effect at once
   * @param isUrgent whether a changed value has to take effect at once; a removal always has to
   */
  constructor(changed: (urgent: boolean) => void, isUrgent: (value: Value) => boolean = () => false) {
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
      this.#changed(true);
      return;
    }
    const reflector: Reflector<Value> = new Reflector({
      ...options,
      changed: (set, removed) => {
        if (reflector === this.#next) this.#replace();
        if (reflector === this.#current) this.#changed(removed.length > 0 || set.some(this.#isUrgent));
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
