// Visits every state that a small model can reach, whatever the order in which its actors take their steps.

/** One atomic step of one actor. */
export interface Step<S> {
  readonly name: string;
  /**
   * An actor takes this step sooner or later by itself. The others come from outside: a client that goes away, a thread
   * that dies. Nobody may wait for those.
   */
  readonly own: boolean;
  /** Changes a copy of the state. */
  readonly take: (next: S) => void;
}

export interface Model<S> {
  readonly start: S;
  steps(state: S): readonly Step<S>[];
  copy(state: S): S;
  /** States that are called alike are the same. */
  key(state: S): string;
  /** What may never be, or undefined. */
  broken(state: S): string | undefined;
  /** What may not be when no actor has a step of its own left, or undefined. */
  stuck(state: S): string | undefined;
}

interface Visit {
  readonly before: Visit | undefined;
  readonly name: string;
}

function path(visit: Visit | undefined): string {
  const names: string[] = [];
  for (let at = visit; at !== undefined; at = at.before) names.push(at.name);
  return names.reverse().join(' → ');
}

/**
 * @param most states that are visited at most
 * @returns how many states there are
 * @throws Error with the steps that lead to the first wrong state
 */
export function explore<S>(model: Model<S>, most: number): number {
  const seen = new Set<string>([model.key(model.start)]);
  let open: { state: S; visit: Visit | undefined }[] = [{ state: model.start, visit: undefined }];
  // Breadth first, so that the way to a wrong state is a shortest one.
  while (open.length > 0) {
    const next: typeof open = [];
    for (const { state, visit } of open) {
      const steps = model.steps(state);
      const wrong = model.broken(state) ?? (steps.some(({ own }) => own) ? undefined : model.stuck(state));
      if (wrong !== undefined) throw new Error(`${wrong}: ${path(visit)}`);
      for (const { name, take } of steps) {
        const copy = model.copy(state);
        take(copy);
        const key = model.key(copy);
        if (seen.has(key)) continue;
        seen.add(key);
        next.push({ state: copy, visit: { before: visit, name } });
      }
    }
    if (seen.size > most) throw new Error(`there are more than ${most} states`);
    open = next;
  }
  return seen.size;
}
