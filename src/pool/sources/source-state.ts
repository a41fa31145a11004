import type { PollIntervals } from './poll-pace.js';
import type { ScrapeFaultKind } from './scrape-fault.js';

/** Counts since the start. */
export interface InformerCounts {
  readonly scrapes: number;
  /** Good scrapes of pages that held none of the wanted metrics. */
  readonly pagesWithoutSignals: number;
  /** Good scrapes that the sink did not accept. */
  readonly refused: number;
  readonly faults: Readonly<Record<ScrapeFaultKind, number>>;
}

/** Age of a source's last data on its endpoints. */
export interface SourceFreshness {
  readonly endpoints: number;
  /** Endpoints without a good page, or with one that is too old: their values are unknown. */
  readonly stale: number;
  /** Milliseconds since the last good page of the endpoint that has gone without for longest, or since it is polled. */
  readonly oldestMs: number;
}

/** What a source's polls take, and how often they come. */
export interface PollUse extends PollIntervals {
  /** Share of a core. */
  readonly usedShare: number;
  /** Whether they take more than their share although they are as rare as they may be. */
  readonly isOver: boolean;
}

/** Polls of one slot. */
export interface PolledSlot {
  /** Whether there has been a good page. */
  readonly isScraped: boolean;
  /** Milliseconds since the last good page, or since it is polled. */
  readonly ageMs: number;
  /** Milliseconds from its last good page to the next poll, by design. */
  readonly intervalMs: number;
  /** Whether the page stands still although requests end at the endpoint. */
  readonly isFrozen: boolean;
}

/** Types of the plugins that a page is fetched and read by: label values of the error counters. */
export interface SourceTypes {
  readonly source: string;
  readonly extractors: readonly string[];
}
