import { cacheLossOfRecord, type DecisionRecord } from '../../core/decision-log.js';
import type { ObjectiveNames } from './objective-names.js';
import type { CacheShown, Point, PriorityShown, Snapshot, Times } from './snapshot.js';

/** Seconds of the answers behind one point of the charts. */
const POINT_SECONDS = 5;

/** Counts of one endpoint over the decisions of a window. */
export interface EndpointTraffic {
  readonly share: number;
  readonly hitRate: number | null;
  readonly ttftMs: number | null;
}

/** Figures of the decisions of a window. All times are of the pool clock, in milliseconds. */
export class Traffic {
  readonly #records: readonly DecisionRecord[];

  /**
   * @param records newest first; of each request counts the first decision that does not have it wait, or its refusal
   */
  constructor(records: readonly DecisionRecord[]) {
    this.#records = records.filter(
      ({ further, status, end }) => !further && (status !== 'waiting' || end === 'rejected'),
    );
  }

  /** @param objectives names by priority */
  priorities(objectives: ObjectiveNames): PriorityShown[] {
    const groups = Map.groupBy(this.#records, ({ priority }) => priority);
    return [...groups.entries()]
      .sort(([a], [b]) => b - a)
      .map(([priority, records]) => ({
        priority,
        objectives: objectives.get(priority) ?? [],
        decided: records.filter(({ status }) => status === 'decided').length,
        refused: records.filter(({ end }) => end === 'rejected').length,
        ttft: timesOf(records.map(({ firstOutputMs }) => firstOutputMs)),
        tpot: timesOf(records.map(perTokenOf)),
      }));
  }

  /**
   * Share of the decisions that configured weights and learned costs have made.
   * @param armOf arm of the decisions with a tag; undefined = unknown
   */
  deciders(armOf: (tag: number) => 'static' | 'learned' | undefined): Snapshot['adaptation']['deciders'] {
    const arms = this.#records
      .filter(({ status }) => status === 'decided')
      .map(({ tag }) => armOf(tag))
      .filter((arm) => arm !== undefined);
    if (arms.length === 0) return null;
    const learned = arms.filter((arm) => arm === 'learned').length / arms.length;
    return { configured: 1 - learned, learned };
  }

  cache(): CacheShown {
    const lost: Record<string, number> = {};
    let promptTokens = 0;
    let matchedTokens = 0;
    for (const record of this.#records) {
      if (record.status !== 'decided') continue;
      promptTokens += record.promptTokens;
      matchedTokens += matchedOf(record);
      const loss = cacheLossOfRecord(record);
      if (loss !== undefined) lost[loss.cause] = (lost[loss.cause] ?? 0) + loss.tokens;
    }
    return { promptTokens, matchedTokens, hitRate: hitRateOf(this.#records), lost };
  }

  endpoints(): ReadonlyMap<number, EndpointTraffic> {
    const decided = this.#records.filter(({ slot }) => slot !== undefined);
    const groups = Map.groupBy(decided, ({ slot }) => slot!);
    return new Map(
      [...groups].map(([slot, records]) => [
        slot,
        {
          share: records.length / decided.length,
          hitRate: hitRateOf(records) ?? matchRateOf(records),
          ttftMs: timesOf(records.map(({ firstOutputMs }) => firstOutputMs)).p50,
        },
      ]),
    );
  }

  /** Whether engines tell how much of a prompt was cached; where none does, the picker's expectation is shown. */
  get #isTold(): boolean {
    return hitRateOf(this.#records) !== null;
  }

  /** The point of the charts at a time: requests of the last second, answers that ended in the last POINT_SECONDS. */
  point(atMs: number, wallMs: number): Point {
    const asked = this.#records.filter(({ timeMs }) => timeMs > atMs - 1000 && timeMs <= atMs).length;
    const from = atMs - POINT_SECONDS * 1000;
    const ended = this.#records.filter((record) => {
      if (record.end === undefined) return false;
      const endMs = record.timeMs + record.durationMs;
      return endMs > from && endMs <= atMs;
    });
    return {
      time: Math.round(wallMs / 1000),
      perSecond: asked,
      ttft: timesOf(ended.map(({ firstOutputMs }) => firstOutputMs)),
      hitRate: hitRateOf(ended) ?? (this.#isTold ? null : matchRateOf(ended)),
    };
  }
}

/** Tokens of the prompt that the picker thought cached. */
export function matchedOf({ matchedBlocks, blockTokens, promptTokens }: DecisionRecord): number {
  return Math.min(matchedBlocks * blockTokens, promptTokens);
}

function perTokenOf({ firstOutputMs, durationMs, outputTokens }: DecisionRecord): number | undefined {
  if (firstOutputMs === undefined || outputTokens === undefined || outputTokens < 2) return undefined;
  return (durationMs - firstOutputMs) / (outputTokens - 1);
}

/** Cached part of the prompts with reports from their engines. */
function hitRateOf(records: readonly DecisionRecord[]): number | null {
  let prompt = 0;
  let cached = 0;
  for (const { enginePromptTokens, cachedTokens } of records) {
    if (enginePromptTokens === undefined || cachedTokens === undefined) continue;
    prompt += enginePromptTokens;
    cached += cachedTokens;
  }
  return prompt === 0 ? null : cached / prompt;
}

function matchRateOf(records: readonly DecisionRecord[]): number | null {
  const prompt = records.reduce((sum, { promptTokens }) => sum + promptTokens, 0);
  return prompt === 0 ? null : records.reduce((sum, record) => sum + matchedOf(record), 0) / prompt;
}

function timesOf(values: readonly (number | undefined)[]): Times {
  const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? null;
  return { p50: at(0.5), p95: at(0.95) };
}
