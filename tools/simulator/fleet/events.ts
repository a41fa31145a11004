/** The simulated clock: actions in the order of their times, equal times in the order in which they were asked for. */
export class EventQueue {
  #nowMs = 0;
  #number = 0;
  readonly #times: number[] = [];
  readonly #numbers: number[] = [];
  readonly #actions: (() => void)[] = [];

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Does `action` after `delayMs`; a negative delay is none. */
  after(delayMs: number, action: () => void): void {
    this.at(this.#nowMs + Math.max(0, delayMs), action);
  }

  at(timeMs: number, action: () => void): void {
    let at = this.#times.length;
    const time = Math.max(timeMs, this.#nowMs);
    const number = this.#number++;
    for (; at > 0; ) {
      const parent = (at - 1) >> 1;
      if (this.#times[parent]! <= time) break;
      this.#move(parent, at);
      at = parent;
    }
    this.#put(at, time, number, action);
  }

  /** Does the next action. @returns false when there is none */
  next(): boolean {
    const action = this.#actions[0];
    if (action === undefined) return false;
    this.#nowMs = this.#times[0]!;
    const last = this.#times.length - 1;
    const [time, number, moved] = [this.#times[last]!, this.#numbers[last]!, this.#actions[last]!];
    this.#times.pop();
    this.#numbers.pop();
    this.#actions.pop();
    if (last > 0) this.#sink(time, number, moved);
    action();
    return true;
  }

  #sink(time: number, number: number, action: () => void): void {
    const length = this.#times.length;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && this.#earlier(child + 1, this.#times[child]!, this.#numbers[child]!)) child++;
      if (!this.#earlier(child, time, number)) break;
      this.#move(child, at);
      at = child;
    }
    this.#put(at, time, number, action);
  }

  #earlier(at: number, time: number, number: number): boolean {
    const own = this.#times[at]!;
    return own < time || (own === time && this.#numbers[at]! < number);
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#times[from]!, this.#numbers[from]!, this.#actions[from]!);
  }

  #put(at: number, time: number, number: number, action: () => void): void {
    this.#times[at] = time;
    this.#numbers[at] = number;
    this.#actions[at] = action;
  }
}
