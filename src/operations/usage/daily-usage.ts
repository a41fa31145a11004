import { combine, NO_USAGE, type TenantTotals } from './tenant-usage.js';

type Tenants = ReadonlyMap<string, TenantTotals>;

/** Usage of one UTC day by tenant, over restarts: the usage in its file at the start, plus the usage counted since. */
export class DailyUsage {
  readonly #read: () => Tenants;
  #day: string;
  #before: Tenants;
  /** Counts when the day, or this process, began. */
  #since: Tenants;

  /**
   * @param read counts since the start of the process
   * @param before usage of the day before the process started
   */
  constructor(read: () => Tenants, day: string, before: Tenants) {
    this.#read = read;
    this.#day = day;
    this.#before = before;
    this.#since = read();
  }

  get day(): string {
    return this.#day;
  }

  /** Usage of the day so far. */
  get tenants(): Tenants {
    const tenants = new Map(this.#before);
    for (const [tenant, totals] of this.#read()) {
      const counted = combine(totals, this.#since.get(tenant) ?? NO_USAGE, -1);
      tenants.set(tenant, combine(tenants.get(tenant) ?? NO_USAGE, counted));
    }
    return tenants;
  }

  /** Begins another day, without usage. */
  begin(day: string): void {
    this.#day = day;
    this.#before = new Map();
    this.#since = this.#read();
  }
}

/** The UTC day of a time in milliseconds since 1970, as `2026-11-22`. */
export function utcDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

/** Milliseconds until the next UTC day. */
export function untilMidnight(ms: number): number {
  return 86_400_000 - (ms % 86_400_000);
}

/** Lines of JSON, one for each tenant with any use, most tokens first. */
export function usageLines(pool: string, day: string, tenants: Tenants): string {
  const used = [...tenants].filter(([, totals]) => Object.values(totals).some((count) => count > 0));
  used.sort(([, a], [, b]) => b.inputTokens + b.outputTokens - a.inputTokens - a.outputTokens);
  return used.map(([tenant, totals]) => `${JSON.stringify(line(pool, day, tenant, totals))}\n`).join('');
}

function line(pool: string, day: string, tenant: string, totals: TenantTotals) {
  const { inputTokens, outputTokens, cachedTokens } = totals;
  return {
    day,
    pool,
    tenant,
    requests: totals.requests,
    errors: totals.errors,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    output_tokens_estimated: totals.estimatedOutputTokens,
    cached_tokens: cachedTokens,
    cached_share: inputTokens === 0 ? null : Math.round((cachedTokens / inputTokens) * 1e4) / 1e4,
    waits: totals.waits,
    wait_seconds: Math.round(totals.waitSeconds * 1e3) / 1e3,
  };
}

/**
 * Reads lines of `usageLines` back.
 * @throws {Error} with the number of the first line that cannot be read
 */
export function readUsageLines(text: string): Map<string, TenantTotals> {
  const tenants = new Map<string, TenantTotals>();
  const lines = text.split('\n').filter((each) => each !== '');
  for (const [at, each] of lines.entries()) {
    const found = parsed(each);
    if (found === undefined) throw new Error(`line ${at + 1} is no usage of a tenant`);
    tenants.set(...found);
  }
  return tenants;
}

const NAMES: readonly (readonly [keyof TenantTotals, string])[] = [
  ['requests', 'requests'],
  ['errors', 'errors'],
  ['inputTokens', 'input_tokens'],
  ['outputTokens', 'output_tokens'],
  ['estimatedOutputTokens', 'output_tokens_estimated'],
  ['cachedTokens', 'cached_tokens'],
  ['waits', 'waits'],
  ['waitSeconds', 'wait_seconds'],
];

/** Files of 0.1 have no estimated tokens. */
function absent(name: string): number | undefined {
  return name === 'output_tokens_estimated' ? 0 : undefined;
}

function parsed(text: string): [string, TenantTotals] | undefined {
  let value: Readonly<Record<string, unknown>> | null;
  try {
    value = JSON.parse(text) as typeof value;
  } catch {
    return undefined;
  }
  if (typeof value?.tenant !== 'string') return undefined;
  const totals = NAMES.map(([field, name]) => [field, value[name] ?? absent(name)] as const);
  if (!totals.every(([, count]) => typeof count === 'number' && count >= 0)) return undefined;
  return [value.tenant, Object.fromEntries(totals) as unknown as TenantTotals];
}
