/** Bound on the edits of a slip of the keyboard; more make another word. */
const EDITS_MAX = 3;
/** Shorter pieces occur in too many names to mean one of them. */
const PIECE_MIN = 5;

/** The name that is probably meant by `given`: a few edits away, or one that contains it. Case does not count. */
export function nearestName(given: string, names: Iterable<string>): string | undefined {
  const list = [...names];
  return fewEditsAway(given, list) ?? containing(given, list) ?? begunAs(given, list);
}

/** The name whose first words, up to the next one, are a few edits away: `waitng` for `waitingRequests`. */
function begunAs(given: string, names: readonly string[]): string | undefined {
  if (given.length < PIECE_MIN) return undefined;
  const begun = new Map(names.flatMap((name) => beginningsOf(name).map((beginning) => [beginning, name] as const)));
  return begun.get(fewEditsAway(given, [...begun.keys()]) ?? '');
}

/** Beginnings of a name that end before one of its words. Names that are too short to mean one are left out. */
function beginningsOf(name: string): string[] {
  const ends = [...name.matchAll(/(?<=[a-z0-9])(?=[A-Z])|[-_.]/g)].map(({ index }) => index);
  return ends.filter((end) => end >= PIECE_MIN).map((end) => name.slice(0, end));
}

function containing(given: string, names: readonly string[]): string | undefined {
  if (given.length < PIECE_MIN) return undefined;
  return names.find((name) => name.toLowerCase().includes(given.toLowerCase()));
}

function fewEditsAway(given: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.min(EDITS_MAX, Math.max(1, Math.floor(given.length / 3))) + 1;
  for (const name of names) {
    const distance = editDistance(given.toLowerCase(), name.toLowerCase());
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

/** `; did you mean "x"?` or nothing: the end of a message about an unknown name. */
export function didYouMean(given: string, names: Iterable<string>): string {
  const name = nearestName(given, names);
  return name === undefined ? '' : `; did you mean "${name}"?`;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = last[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1);
      let cost = Math.min(replaced, last[column]! + 1, current[column - 1]! + 1);
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        cost = Math.min(cost, beforeLast[column - 2]! + 1);
      }
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return last[b.length]!;
}
