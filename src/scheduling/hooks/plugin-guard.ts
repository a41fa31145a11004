import { messageWithPlace } from '../../runtime/error-place.js';
import type { PluginLog } from './hooks.js';

/** Failures in a row after which a plugin is switched off. */
export const FAILURES_MAX = 10;
/**
 * Bound on the time of a hook in milliseconds. Far above a hook's need, also when the system suspends the thread for a
 * time slice, and far below a noticeable delay.
 */
export const BUDGET_MS = 20;
/**
 * The same bound for built-in plugins, whose hooks are known to be short. There a time above BUDGET_MS means a
 * suspended thread, and without the result a request could go to a wrong endpoint.
 */
export const PATIENT_BUDGET_MS = 1_000;

export interface GuardOptions {
  /** Configured name of the plugin. */
  readonly name: string;
  readonly budgetMs: number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Counts a failure. */
  readonly failed: (plugin: string) => void;
  readonly log: PluginLog;
}

/**
 * Calls the hooks of one plugin so that the request goes on in any case. The result of a failed call is replaced by a
 * neutral value. A plugin with too many failures in a row is switched off for good, with one log line.
 */
export class PluginGuard {
  readonly #options: GuardOptions;
  #inARow = 0;
  #disabled = false;

  constructor(options: GuardOptions) {
    this.#options = options;
  }

  get disabled(): boolean {
    return this.#disabled;
  }

  /** Calls a hook; `neutral` is the result of a plugin that failed or is switched off. */
  run<Result>(hook: string, call: () => Result, neutral: Result): Result {
    if (this.#disabled) return neutral;
    const { now, budgetMs } = this.#options;
    const startedAt = now();
    let result: Result;
    try {
      result = call();
    } catch (error) {
      return this.#fail(hook, messageWithPlace(error), neutral);
    }
    const took = now() - startedAt;
    if (took > budgetMs) return this.#fail(hook, `took ${took.toFixed(1)} ms of ${budgetMs} ms`, neutral);
    if (isPromise(result)) {
      result.then(undefined, () => {});
      return this.#fail(hook, 'returned a promise: hooks are synchronous', neutral);
    }
    this.#inARow = 0;
    return result;
  }

  #fail<Result>(hook: string, why: string, neutral: Result): Result {
    const { name, failed, log } = this.#options;
    failed(name);
    if (++this.#inARow < FAILURES_MAX) return neutral;
    this.#disabled = true;
    const details = { plugin: name, hook, failures: this.#inARow, error: why };
    log.error(details, 'a plugin keeps failing: it is not called any more');
    return neutral;
  }
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function';
}
