import type { KeptColumns } from '../contract/kept-columns.js';
import type { RequestHeaders } from '../scheduling/request-headers.js';

/** What a request is known by. */
export interface KnownRequest {
  readonly fairnessId: string;
  /** Name of the model as the client writes it. */
  readonly model: string;
}

/** Chooses the requests whose decisions keep their columns on demand. One for each shard. */
export class ColumnRequests {
  #wanted: readonly KeptColumns[] = [];
  /** Decisions that have kept their columns, by number. */
  readonly #kept = new Map<number, number>();

  /** Replaces the wanted requests. Counts of those that are still wanted continue. */
  replace(wanted: readonly KeptColumns[]): void {
    this.#wanted = wanted;
    for (const number of this.#kept.keys()) {
      if (!wanted.some((each) => each.number === number)) this.#kept.delete(number);
    }
  }

  /** Whether the next decision keeps its columns. @param nowMs pool clock */
  keeps(request: KnownRequest, headers: RequestHeaders, nowMs: number): boolean {
    if (this.#wanted.length === 0) return false;
    for (const wanted of this.#wanted) {
      if (nowMs >= wanted.untilMs || !matches(wanted, request, headers)) continue;
      const kept = this.#kept.get(wanted.number) ?? 0;
      if (kept >= wanted.decisions) continue;
      this.#kept.set(wanted.number, kept + 1);
      return true;
    }
    return false;
  }
}

function matches({ by, value }: KeptColumns, { fairnessId, model }: KnownRequest, headers: RequestHeaders): boolean {
  if (by === 'tenant') return fairnessId === value;
  if (by === 'model') return model === value;
  return headers.get('x-session-id') === value || headers.get('x-session-token') === value;
}
