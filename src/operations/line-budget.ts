/** Bound on the lines of one kind in one interval; the rest are one line at its end, with their number. */
const LINES_MAX = 20;
const INTERVAL_MS = 10_000;
/** Bound on the kinds that are distinguished in one interval; further ones share a budget. */
const KINDS_MAX = 500;
const OTHER = 'other';
/** Words that tell lines of one kind apart: names, addresses, numbers, quoted texts. */
const NAMES = /"[^"]*"|\S*[\d/_:.-]\S*/g;
/** Characters of a message that determine its kind. */
const KIND_LENGTH_MAX = 200;

/** @param lines number that the line stands for */
export type WriteLine = (lines: number) => void;

interface Kind {
  written: number;
  left: number;
  /** Writes the latest of the lines left out. */
  last: WriteLine | undefined;
}

/**
 * Bounds the lines of one kind, such as one for each of 20,000 pods. Nothing is lost silently: at the end of the
 * interval the latest line is repeated, with the number of lines that were left out.
 */
export class LineBudget {
  readonly #kinds = new Map<string, Kind>();
  #sinceMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  /** Writes a line now, or leaves it to the end of the interval. @param level of the line; budgets are by level */
  take(level: number, message: string, write: WriteLine, nowMs = performance.now()): void {
    if (nowMs - this.#sinceMs >= INTERVAL_MS) this.#begin(nowMs);
    const kind = this.#kindOf(`${level} ${message.slice(0, KIND_LENGTH_MAX).replace(NAMES, '#')}`);
    if (kind.written < LINES_MAX) {
      kind.written++;
      write(1);
      return;
    }
    kind.left++;
    kind.last = write;
    this.#timer ??= setTimeout(() => this.flush(), this.#sinceMs + INTERVAL_MS - nowMs).unref();
  }

  /** Logs the number of lines that were left out. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const kind of this.#kinds.values()) {
      const { left, last } = kind;
      kind.left = 0;
      kind.last = undefined;
      last?.(left);
    }
  }

  #begin(nowMs: number): void {
    this.flush();
    this.#kinds.clear();
    this.#sinceMs = nowMs;
  }

  #kindOf(text: string): Kind {
    const name = this.#kinds.has(text) || this.#kinds.size < KINDS_MAX ? text : OTHER;
    let kind = this.#kinds.get(name);
    if (kind === undefined) {
      kind = { written: 0, left: 0, last: undefined };
      this.#kinds.set(name, kind);
    }
    return kind;
  }
}
