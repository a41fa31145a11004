import type { TokenBucketSettings } from '../contract/queue-settings.js';

const EVERY_TENANT = '*';
/** Bound on the buckets of tenants without settings of their own. */
const BUCKETS_MAX = 100_000;
/** Buckets that are checked for a full one at the bound. */
const LOOKS = 8;

interface Bucket {
  tokens: number;
  sinceMs: number;
}

/** Token buckets of tenants. A request larger than its bucket passes when the bucket is full and leaves a debt. */
export class TokenBuckets {
  /** Factor on rates and sizes, 1 = the share of one picker. Larger where the buckets include the use of peers. */
  factor = 1;
  readonly #named: ReadonlyMap<string, TokenBucketSettings>;
  readonly #buckets = new Map<string, Bucket>();
  /** Tokens used here since the start, of tenants with a bucket. */
  readonly #used = new Map<string, number>();
  readonly #news = new Set<string>();

  constructor(settings: readonly TokenBucketSettings[]) {
    this.#named = new Map(settings.map((each) => [each.fairnessId, each]));
  }

  get size(): number {
    return this.#buckets.size;
  }

  /** Whether a tenant has a bucket, so that all of its requests must be counted here, also those that do not wait. */
  limits(fairnessId: string): boolean {
    return this.#settingsOf(fairnessId) !== undefined;
  }

  /** Milliseconds until the tenant may send a request of `tokens` tokens; 0 = now. */
  waitFor(fairnessId: string, tokens: number, nowMs: number): number {
    const settings = this.#settingsOf(fairnessId);
    if (settings === undefined) return 0;
    const missing = Math.min(tokens, settings.burstTokens) - this.#level(fairnessId, settings, nowMs);
    return missing <= 0 ? 0 : (missing / settings.tokensPerSecond) * 1000;
  }

  take(fairnessId: string, tokens: number, nowMs: number): void {
    if (this.#settingsOf(fairnessId) === undefined) return;
    this.#use(fairnessId, tokens);
    this.takeElsewhere(fairnessId, tokens, nowMs);
  }

  /**
   * Charges tokens that a tenant has used at another picker.
   * @param isProven else the report may be forged, and leaves no larger debt than a bucket holds: the tenant waits for
   * two full buckets at most
   */
  takeElsewhere(fairnessId: string, tokens: number, nowMs: number, isProven = true): void {
    const settings = this.#settingsOf(fairnessId);
    if (settings === undefined) return;
    const before = this.#level(fairnessId, settings, nowMs);
    const least = isProven ? Number.NEGATIVE_INFINITY : Math.min(before, -settings.burstTokens);
    const level = Math.max(least, before - tokens);
    this.#buckets.delete(fairnessId);
    if (this.#buckets.size >= BUCKETS_MAX) this.#dropFull(nowMs);
    this.#buckets.set(fairnessId, { tokens: level, sinceMs: nowMs });
  }

  /** Tokens that are missing in the buckets that are not full, most first. @param tenantsMax bound on the tenants */
  missing(tenantsMax: number, nowMs: number): { readonly tenant: string; readonly tokens: number }[] {
    const all = [...this.#buckets.keys()].map((tenant) => {
      const settings = this.#settingsOf(tenant);
      return {
        tenant,
        tokens: settings === undefined ? 0 : settings.burstTokens - this.#level(tenant, settings, nowMs),
      };
    });
    return all
      .filter(({ tokens }) => tokens > 0)
      .sort((a, b) => b.tokens - a.tokens)
      .slice(0, tenantsMax);
  }

  /** Takes tokens that were missing in a bucket `ageMs` ago. */
  restore(fairnessId: string, missing: number, ageMs: number, nowMs: number): void {
    const settings = this.#settingsOf(fairnessId);
    if (settings === undefined) return;
    const left = missing - (ageMs / 1000) * settings.tokensPerSecond;
    if (left > 0) this.takeElsewhere(fairnessId, left, nowMs);
  }

  #use(fairnessId: string, tokens: number): void {
    if (this.#used.size >= BUCKETS_MAX && !this.#used.has(fairnessId)) return;
    this.#used.set(fairnessId, (this.#used.get(fairnessId) ?? 0) + tokens);
    this.#news.add(fairnessId);
  }

  /**
   * Tenants that have used tokens since the last call, with the total of each since the start of the process.
   * @param tenantsMax bound on the tenants that are returned
   * @param againMs the time, to tell again of tenants whose bucket is not full: a report may have been lost
   */
  takeNews(tenantsMax: number, againMs?: number): { readonly tenant: string; readonly tokens: number }[] {
    if (againMs !== undefined) this.#renewNews(tenantsMax, againMs);
    const news: { tenant: string; tokens: number }[] = [];
    for (const tenant of this.#news) {
      if (news.length === tenantsMax) break;
      this.#news.delete(tenant);
      news.push({ tenant, tokens: this.#used.get(tenant)! });
    }
    return news;
  }

  #renewNews(tenantsMax: number, nowMs: number): void {
    for (const tenant of this.#buckets.keys()) {
      if (this.#news.size >= tenantsMax) return;
      const settings = this.#settingsOf(tenant);
      if (settings === undefined || !this.#used.has(tenant)) continue;
      if (this.#level(tenant, settings, nowMs) < settings.burstTokens) this.#news.add(tenant);
    }
  }

  #settingsOf(fairnessId: string): TokenBucketSettings | undefined {
    const settings = this.#named.get(fairnessId) ?? this.#named.get(EVERY_TENANT);
    if (settings === undefined || this.factor === 1) return settings;
    const { tokensPerSecond, burstTokens } = settings;
    return { fairnessId, tokensPerSecond: tokensPerSecond * this.factor, burstTokens: burstTokens * this.factor };
  }

  #level(fairnessId: string, settings: TokenBucketSettings, nowMs: number): number {
    const bucket = this.#buckets.get(fairnessId);
    if (bucket === undefined) return settings.burstTokens;
    const gained = ((nowMs - bucket.sinceMs) / 1000) * settings.tokensPerSecond;
    return Math.min(settings.burstTokens, bucket.tokens + gained);
  }

  /**
   * Drops a full bucket, which holds no information. When none of the longest unused is full, the first of them is
   * dropped.
   */
  #dropFull(nowMs: number): void {
    let looks = 0;
    let first: string | undefined;
    for (const id of this.#buckets.keys()) {
      first ??= id;
      const settings = this.#settingsOf(id)!;
      if (this.#level(id, settings, nowMs) >= settings.burstTokens) {
        this.#buckets.delete(id);
        return;
      }
      if (++looks === LOOKS) break;
    }
    if (first !== undefined) this.#buckets.delete(first);
  }
}
