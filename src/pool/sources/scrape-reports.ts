import { PacedReport } from '../../runtime/paced-report.js';
import type { PollPace } from './poll-pace.js';
import type { InformerLog } from './signal-reader.js';

/** Time for which endpoints with traffic are scraped too rarely before the log says so: at first all count as such. */
const RARE_MS = 10_000;
/** Least time between two lines of the log that they are. */
const TELL_RARE_MS = 600_000;

/** What the log says of the scrapes' share of a core. */
type Pace = Pick<PollPace, 'intervals' | 'usedShare' | 'isOver'>;

/** Log lines of scrapes that are rarer than configured, or take more than their share although they are. */
export class ScrapeReports {
  readonly #log: InformerLog;
  readonly #intervalMs: number;
  readonly #over: PacedReport<object>;
  /** Time since which endpoints with traffic are scraped more rarely than at the interval; undefined = they are not. */
  #rareSinceMs: number | undefined;
  #toldRareMs = Number.NEGATIVE_INFINITY;

  /** @param intervalMs interval of scrapes as it is configured */
  constructor(log: InformerLog, intervalMs: number) {
    this.#log = log;
    this.#intervalMs = intervalMs;
    this.#over = new PacedReport((fields) =>
      log.warn(
        fields,
        'scrapes take more than their share of a core although they are as rare as they may be: raise ' +
          '--scrape-cpu-percent, or look for the metrics that make the pages of the endpoints large',
      ),
    );
  }

  /** Looks at the pace of the scrapes, at each tick. @param endpoints that are scraped */
  look(pace: Pace, endpoints: number, nowMs: number): void {
    if (pace.isOver) this.#over.note(fieldsOf(pace, pace.intervals.quietMs, endpoints), nowMs);
    this.#lookAtBusy(pace, endpoints, nowMs);
  }

  /** Tells of endpoints with traffic that are scraped too rarely for a while: decisions go by their older signals. */
  #lookAtBusy(pace: Pace, endpoints: number, nowMs: number): void {
    const { busyMs } = pace.intervals;
    if (busyMs <= this.#intervalMs) {
      this.#rareSinceMs = undefined;
      return;
    }
    this.#rareSinceMs ??= nowMs;
    if (nowMs - this.#rareSinceMs < RARE_MS || nowMs - this.#toldRareMs < TELL_RARE_MS) return;
    this.#toldRareMs = nowMs;
    this.#log.info(
      fieldsOf(pace, busyMs, endpoints),
      'endpoints with traffic are scraped more rarely than --refresh-metrics-interval, as scrapes take their share ' +
        'of a core: raise --scrape-cpu-percent, or look for the metrics that make the pages of the endpoints large',
    );
  }
}

function fieldsOf({ usedShare }: Pace, intervalMs: number, endpoints: number): object {
  return { share: Number(usedShare.toFixed(2)), seconds: intervalMs / 1_000, endpoints };
}
