/** Names of objectives by their priority. */
export type ObjectiveNames = ReadonlyMap<number, readonly string[]>;

/** Bound on the names beside one priority. */
const NAMES_MAX = 3;

/** The first names of every priority, and the number of the others. */
export function objectiveNames(objectives: Iterable<readonly [name: string, priority: number]>): ObjectiveNames {
  const groups = Map.groupBy(objectives, ([, priority]) => priority);
  return new Map(
    [...groups].map(([priority, entries]) => {
      const names = entries.map(([name]) => name).sort();
      const rest = names.length - NAMES_MAX;
      return [priority, rest > 0 ? [...names.slice(0, NAMES_MAX), `${rest} more`] : names] as const;
    }),
  );
}
