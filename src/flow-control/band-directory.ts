import type { BandSettings, FlowControlSettings } from '../contract/queue-settings.js';
import { Band, type QueueTables } from './band.js';

/** Bound on the bands, because each has a rank of its own in the gate. */
export const BANDS_MAX = 32;
/** Time without a request after which a band made at run time is dropped (as in llm-d-router). */
const IDLE_MS = 600_000;
/** Time without a request for which every flow is kept (as in llm-d-router). */
const FLOW_IDLE_MS = 300_000;

/** The bands of a pool, highest priority first. Configured ones always exist, and so does priority 0. */
export class BandDirectory {
  readonly #tables: QueueTables;
  /** Time without a request after which flows are dropped: the longest that a fairness policy asks for. */
  flowIdleMs = FLOW_IDLE_MS;
  #settings: FlowControlSettings;
  #sorted: Band[] = [];
  readonly #byPriority = new Map<number, Band>();

  constructor(settings: FlowControlSettings, tables: QueueTables, nowMs: number) {
    this.#settings = settings;
    this.#tables = tables;
    this.configure(settings, nowMs);
  }

  get sorted(): readonly Band[] {
    return this.#sorted;
  }

  get(priority: number): Band | undefined {
    return this.#byPriority.get(priority);
  }

  /** Longest wait in milliseconds in the band of a priority, with endpoints in the pool; Infinity = no end. */
  ttlMs(priority: number): number {
    return this.#byPriority.get(priority)?.ttlMs ?? this.#settings.ttlMs;
  }

  /** Tells every band that a number of a candidate set means other candidates. */
  renamedSet(id: number): void {
    for (const band of this.#sorted) band.fairness.newSet(id);
  }

  /**
   * The band of a priority; made when there is none. At the bound, the next lower band takes the request, never a
   * higher one. @returns undefined when there is no lower band either
   */
  bandFor(priority: number, nowMs: number): Band | undefined {
    const present = this.#byPriority.get(priority);
    if (present !== undefined) return present;
    if (this.#sorted.length >= BANDS_MAX) this.#dropIdle(nowMs, 0);
    if (this.#sorted.length >= BANDS_MAX) return this.#sorted.find((band) => band.priority < priority);
    return this.#add(priority, nowMs);
  }

  /** Drops bands that are neither configured nor in use. */
  collect(nowMs: number): void {
    this.#dropIdle(nowMs, IDLE_MS);
  }

  /**
   * Applies other settings. A band whose policies stay continues with the new limits. Otherwise a new band takes its
   * place; the caller must have taken out the waiting requests before.
   * @param stay priorities whose band is needed besides those that are configured or used
   */
  configure(settings: FlowControlSettings, nowMs: number, stay: Iterable<number> = []): void {
    const before = this.#settings;
    this.#settings = settings;
    this.flowIdleMs = flowIdleMs(settings);
    const old = this.#sorted;
    this.#sorted = [];
    this.#byPriority.clear();
    const priorities = [0, ...settings.bands.map((band) => band.priority)];
    const used = old.filter((band) => band.waiting + band.running > 0).map((band) => band.priority);
    for (const priority of new Set([...priorities, ...used, ...stay])) {
      const band = old.find((each) => each.priority === priority);
      if (band === undefined || !goesOn(band, before, settings)) {
        this.#add(priority, nowMs).running = band?.running ?? 0;
        continue;
      }
      const { limits, ttlMs } = settingsFor(priority, settings);
      Object.assign(band, { limits, ttlMs });
      band.configured = this.#isConfigured(priority);
      this.#insert(band);
    }
    for (const { priority } of old) if (!this.#byPriority.has(priority)) this.#tables.flows.forgetBand(priority);
  }

  /** Whether the bands of these settings and those in use are within the bound. */
  fits(settings: FlowControlSettings): boolean {
    const used = this.#sorted.filter((band) => band.waiting + band.running > 0).map((band) => band.priority);
    return new Set([0, ...settings.bands.map((band) => band.priority), ...used]).size <= BANDS_MAX;
  }

  /** Whether a band would continue under other settings. */
  keeps(band: Band, settings: FlowControlSettings): boolean {
    return goesOn(band, this.#settings, settings);
  }

  #add(priority: number, nowMs: number): Band {
    const band = new Band(
      priority,
      this.#isConfigured(priority),
      settingsFor(priority, this.#settings),
      this.#tables,
      nowMs,
    );
    this.#insert(band);
    return band;
  }

  #insert(band: Band): void {
    this.#byPriority.set(band.priority, band);
    this.#sorted = [...this.#sorted, band].sort((a, b) => b.priority - a.priority);
  }

  /** Drops the flows of a band that is made anew. Their accounts and weights do not fit the new policy. */
  #forget(priority: number): void {
    this.#byPriority.delete(priority);
    this.#tables.flows.forgetBand(priority);
  }

  #isConfigured(priority: number): boolean {
    return priority === 0 || this.#settings.bands.some((band) => band.priority === priority);
  }

  #dropIdle(nowMs: number, idleMs: number): void {
    const kept = this.#sorted.filter((band) => {
      const used = band.configured || band.waiting + band.running > 0 || nowMs - band.idleSinceMs < idleMs;
      if (!used) this.#forget(band.priority);
      return used;
    });
    if (kept.length < this.#sorted.length) this.#sorted = kept;
  }
}

function flowIdleMs({ bands, template, negativeTemplate, fallback }: FlowControlSettings): number {
  const all = [...bands, template, negativeTemplate, fallback].map((band) => band?.fairness);
  return Math.max(FLOW_IDLE_MS, ...all.map((fairness) => (fairness?.kind === 'turn-priority' ? fairness.forgetMs : 0)));
}

/** Settings of a priority: its own, those of the template, or those of the configured band next below. */
function settingsFor(priority: number, settings: FlowControlSettings): BandSettings & { readonly ttlMs: number } {
  const given = givenFor(priority, settings);
  return { ...given, ttlMs: given.ttlMs ?? settings.ttlMs };
}

function givenFor(priority: number, settings: FlowControlSettings): BandSettings {
  const own = settings.bands.find((band) => band.priority === priority);
  if (own !== undefined) return own;
  const template = priority < 0 ? settings.negativeTemplate : settings.template;
  if (template !== undefined) return template;
  const below = settings.bands.filter((band) => band.priority < priority).sort((a, b) => b.priority - a.priority);
  return below[0] ?? settings.fallback;
}

/**
 * Whether the order of a band's requests is still valid under other settings. Deadlines depend on the time to live too.
 */
function goesOn(band: Band, before: FlowControlSettings, next: FlowControlSettings): boolean {
  const { fairness, ordering } = band.settings;
  const other = settingsFor(band.priority, next);
  if (JSON.stringify([fairness, ordering]) !== JSON.stringify([other.fairness, other.ordering])) return false;
  return ordering.kind !== 'deadline' || settingsFor(band.priority, before).ttlMs === other.ttlMs;
}
