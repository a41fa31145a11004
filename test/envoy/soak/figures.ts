/** Figures of a picker from its metrics page. */
export interface Figures {
  /** Seconds since the start of the sampling. */
  readonly at: number;
  readonly rssMb: number;
  readonly cpuSeconds: number;
  /** Time in which the shard did not wait for work, and in which garbage collections held it. */
  readonly busySeconds: number;
  readonly collectionSeconds: number;
  readonly streams: number;
  readonly bodySlots: number;
  readonly heldBytes: number;
  readonly charges: number;
  readonly running: number;
}

const MB = 1e6;

/** Sum of a metric's series; 0 when it has none. */
function sum(page: string, name: string): number {
  const series = page.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'));
  return [...series].reduce((total, [, value]) => total + Number(value), 0);
}

/** @returns undefined when the page is not served, or the shard has not told of itself yet */
export async function readFigures(metricsUrl: string, at: number): Promise<Figures | undefined> {
  // One page that is missing is no fault: the machine may have stood still.
  const page = await fetch(metricsUrl).then(
    (response) => (response.ok ? response.text() : ''),
    () => '',
  );
  if (!page.includes('pointsman_shard_streams{')) return undefined;
  return {
    at,
    rssMb: sum(page, 'process_resident_memory_bytes') / MB,
    cpuSeconds: sum(page, 'process_cpu_seconds_total'),
    busySeconds: sum(page, 'pointsman_shard_busy_seconds_total'),
    collectionSeconds: sum(page, 'pointsman_shard_collection_seconds_total'),
    streams: sum(page, 'pointsman_shard_streams'),
    bodySlots: sum(page, 'pointsman_shard_body_slots'),
    heldBytes: sum(page, 'pointsman_shard_held_bytes'),
    charges: sum(page, 'pointsman_ledger_entries'),
    running: sum(page, 'llm_d_epp_request_running'),
  };
}

/** Use that has to be gone when all streams have ended. */
export function leftOver({ streams, bodySlots, heldBytes, charges, running }: Figures): string[] {
  const left = { streams, bodySlots, heldBytes, charges, running };
  return Object.entries(left).flatMap(([name, value]) => (value === 0 ? [] : [`${name}: ${value}`]));
}

/** Line through values by least squares. */
export interface Trend {
  readonly mean: number;
  /** From the first to the last value, along the line. */
  readonly growth: number;
  /** Standard deviation of the values from the line. */
  readonly noise: number;
}

export function trend(points: readonly (readonly [x: number, y: number])[]): Trend {
  const count = points.length;
  const meanX = points.reduce((total, [x]) => total + x, 0) / count;
  const mean = points.reduce((total, [, y]) => total + y, 0) / count;
  const variance = points.reduce((total, [x]) => total + (x - meanX) ** 2, 0);
  const slope = points.reduce((total, [x, y]) => total + (x - meanX) * (y - mean), 0) / (variance || 1);
  const squares = points.reduce((total, [x, y]) => total + (y - mean - slope * (x - meanX)) ** 2, 0);
  const width = (points.at(-1)?.[0] ?? 0) - (points[0]?.[0] ?? 0);
  return { mean, growth: slope * width, noise: Math.sqrt(squares / count) };
}
