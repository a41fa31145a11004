/** One endpoint as the plugins of predicted latency see it; undefined = nothing is predicted. */
export interface Predicted {
  readonly ttft: number | undefined;
  readonly tpot: number | undefined;
  readonly inflight: number;
}

export interface LatencyRules {
  readonly ttftWeight: number;
  readonly tpotWeight: number;
  readonly strategy: 'least' | 'most';
  readonly wantedTtft: number;
  readonly wantedTpot: number;
}

interface Headroom {
  readonly ttft: number;
  readonly tpot: number;
}

function headroomOf({ ttft, tpot }: Predicted, rules: LatencyRules): Headroom | undefined {
  if (ttft === undefined || tpot === undefined) return undefined;
  return { ttft: rules.wantedTtft - ttft, tpot: rules.wantedTpot - tpot };
}

/** The slots that latency-scorer looks at: the first of its buckets that is not empty. */
function bucketOf(endpoints: readonly Predicted[], rules: LatencyRules): { slots: number[]; positive: boolean } {
  const rooms = endpoints.map((endpoint) => headroomOf(endpoint, rules));
  const choose = (accepts: (room: Headroom, slot: number) => boolean) =>
    rooms.flatMap((room, slot) => (room !== undefined && accepts(room, slot) ? [slot] : []));
  const buckets = [
    choose(({ ttft, tpot }) => ttft >= 0 && tpot >= 0),
    choose((_, slot) => endpoints[slot]!.inflight === 0),
    choose(({ ttft, tpot }) => ttft >= 0 && tpot < 0),
    choose(({ ttft, tpot }) => ttft < 0 && tpot >= 0),
    choose(({ ttft, tpot }) => ttft < 0 && tpot < 0),
  ];
  const first = buckets.findIndex((slots) => slots.length > 0);
  return { slots: buckets[first] ?? [], positive: first === 0 };
}

/** latency-scorer by its description; scores cut to 1. Undefined when nothing is predicted for anyone. */
export function latencyScores(endpoints: readonly Predicted[], rules: LatencyRules): number[] | undefined {
  const { slots, positive } = bucketOf(endpoints, rules);
  if (slots.length === 0) return undefined;
  const sum = rules.ttftWeight + rules.tpotWeight;
  const rooms = slots.map((slot) => headroomOf(endpoints[slot]!, rules)!);
  const extremes = (values: number[]) => ({
    low: Math.min(...values),
    range: Math.max(...values) - Math.min(...values),
  });
  const ttft = extremes(rooms.map((room) => Math.abs(room.ttft)));
  const tpot = extremes(rooms.map((room) => Math.abs(room.tpot)));
  let [share, rest] = sum <= 0 ? [1, 0] : [rules.ttftWeight / sum, rules.tpotWeight / sum];
  if (ttft.range <= 1e-9 && tpot.range > 1e-9) [share, rest] = [0, 1];
  else if (tpot.range <= 1e-9 && ttft.range > 1e-9) [share, rest] = [1, 0];
  const normal = (value: number, { low, range }: { low: number; range: number }) =>
    range <= 1e-9 ? 0.5 : (Math.abs(value) - low) / range;
  const scores = new Map(
    slots.map((slot, i) => {
      const combined = share * normal(rooms[i]!.ttft, ttft) + rest * normal(rooms[i]!.tpot, tpot);
      const most = positive && rules.strategy === 'most';
      const hundredths = Math.trunc((most ? combined : 1 - combined) * 100) + 1;
      return [slot, Math.min(hundredths / 100, 1)] as const;
    }),
  );
  const mean = [...scores.values()].reduce((total, score) => total + score, 0) / slots.length;
  return endpoints.map((endpoint, slot) => {
    if (headroomOf(endpoint, rules) === undefined) return mean;
    return scores.get(slot) ?? 0;
  });
}
