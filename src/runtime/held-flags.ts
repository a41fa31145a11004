import { setFlagsFromString } from 'node:v8';

/**
 * A flag of V8 that is changed for a while. Flags are the process's: the thread that ends its hold first ends the
 * effect for all. Meanwhile V8 refuses code that was compiled before, and what it compiles is refused afterwards
 * (compiled-program.ts).
 */
export class HeldFlag {
  readonly #begin: string;
  readonly #end: string;
  #holds = 0;

  /** @param end the flag as V8 has it by itself */
  constructor(begin: string, end: string) {
    this.#begin = begin;
    this.#end = end;
  }

  /** @returns ends this hold; behind the last hold of this thread the flag is as before */
  hold(): () => void {
    if (this.#holds++ === 0) setFlagsFromString(this.#begin);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      if (--this.#holds === 0) setFlagsFromString(this.#end);
    };
  }
}
