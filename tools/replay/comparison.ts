import type { LoadedConfiguration } from '../../src/config/load.js';
import type { Recording } from '../../src/operations/recording/recording-reader.js';
import { ReplayPool } from './replay-pool.js';

/** Sums over the decisions of one priority. */
export interface ReplayedGroup {
  readonly priority: number;
  readonly decisions: number;
  /** Decisions for which the other configuration picks another endpoint, or none. */
  readonly different: number;
  /** Decisions for which the other configuration has no endpoint. */
  readonly unplaced: number;
  /** Mean predicted cost of the picks where both have one, in targets; null = there is no such decision. */
  readonly cost: { readonly recorded: number; readonly other: number } | null;
  /** Share of the prompt tokens that the picks held, where both have one; null without prompts. */
  readonly cached: { readonly recorded: number; readonly other: number } | null;
}

/** Share of the picks that an endpoint has. */
export interface ReplayedEndpoint {
  readonly endpoint: string;
  readonly recorded: number;
  readonly other: number;
}

export interface ReplayResult {
  readonly decisions: number;
  /** Share of the recorded picks that the recorded configuration makes again. */
  readonly reproduced: number;
  /** All priorities together, then each. */
  readonly total: ReplayedGroup;
  readonly priorities: readonly ReplayedGroup[];
  readonly endpoints: readonly ReplayedEndpoint[];
}

class GroupSums {
  decisions = 0;
  different = 0;
  unplaced = 0;
  both = 0;
  promptTokens = 0;
  readonly cost = { recorded: 0, other: 0 };
  readonly cached = { recorded: 0, other: 0 };

  group(priority: number): ReplayedGroup {
    const { decisions, different, unplaced, both, promptTokens, cost, cached } = this;
    const over = (sums: typeof cost, by: number) =>
      by === 0 ? null : { recorded: sums.recorded / by, other: sums.other / by };
    return { priority, decisions, different, unplaced, cost: over(cost, both), cached: over(cached, promptTokens) };
  }
}

/** Plays the decisions of a recording again, with another configuration beside the recorded one. */
export function replay(recording: Recording, recorded: LoadedConfiguration, other: LoadedConfiguration): ReplayResult {
  const pool = new ReplayPool(recording, recorded, other);
  const total = new GroupSums();
  const priorities = new Map<number, GroupSums>();
  const picks = new Map<number, { recorded: number; other: number }>();
  let reproduced = 0;
  for (const decision of recording.decisions) {
    const played = pool.play(decision);
    const picked = decision.picks[0]!;
    if (played.again === picked) reproduced++;
    const group = priorities.get(decision.priority) ?? new GroupSums();
    priorities.set(decision.priority, group);
    for (const sums of [total, group]) {
      sums.decisions++;
      if (played.other !== picked) sums.different++;
      if (played.other === undefined) {
        sums.unplaced++;
        continue;
      }
      const tokens = (slot: number) => Math.min(played.matchedOf(slot) * decision.blockTokens, decision.promptTokens);
      sums.both++;
      sums.promptTokens += decision.promptTokens;
      sums.cost.recorded += played.costOf(picked);
      sums.cost.other += played.costOf(played.other);
      sums.cached.recorded += tokens(picked);
      sums.cached.other += tokens(played.other);
    }
    at(picks, picked).recorded++;
    if (played.other !== undefined) at(picks, played.other).other++;
  }
  const count = Math.max(1, recording.decisions.length);
  return {
    decisions: recording.decisions.length,
    reproduced: reproduced / count,
    total: total.group(0),
    priorities: [...priorities].sort(([a], [b]) => b - a).map(([priority, sums]) => sums.group(priority)),
    endpoints: [...picks]
      .sort(([a], [b]) => a - b)
      .map(([slot, sums]) => ({
        endpoint: recording.endpoints.get(slot)?.endpoint.id ?? `slot ${slot}`,
        recorded: sums.recorded / count,
        other: sums.other / count,
      })),
  };
}

function at(picks: Map<number, { recorded: number; other: number }>, slot: number) {
  const known = picks.get(slot) ?? { recorded: 0, other: 0 };
  picks.set(slot, known);
  return known;
}
