/** Rule by which the traffic of a rollout is divided among the revisions. */
export type GatingMode = 'sum' | 'max-role';

/** Endpoints of one revision by role. */
export type RoleCounts = ReadonlyMap<string, number>;

/**
 * Share of the traffic of each revision, 0 … 1 and 1 in total; a revision that lacks a required role gets 0.
 * `sum`: in proportion to its endpoints of all required roles. `max-role`: in proportion to its endpoints of the role
 * with the most endpoints over all complete revisions, the first of `roles` among equals.
 * @param revisions role counts by revision
 * @param roles required roles of a revision, at least one
 */
export function revisionShares(
  revisions: ReadonlyMap<string, RoleCounts>,
  roles: readonly string[],
  mode: GatingMode,
): ReadonlyMap<string, number> {
  const complete = [...revisions].filter(([, counts]) => roles.every((role) => (counts.get(role) ?? 0) > 0));
  const counted =
    mode === 'sum'
      ? roles
      : [
          largestRole(
            complete.map(([, counts]) => counts),
            roles,
          ),
        ];
  const weights = new Map(complete.map(([revision, counts]) => [revision, total(counts, counted)]));
  const all = [...weights.values()].reduce((sum, weight) => sum + weight, 0);
  return new Map(
    [...revisions.keys()].map((revision) => [revision, all === 0 ? 0 : (weights.get(revision) ?? 0) / all]),
  );
}

function total(counts: RoleCounts, roles: readonly string[]): number {
  return roles.reduce((sum, role) => sum + (counts.get(role) ?? 0), 0);
}

function largestRole(counts: readonly RoleCounts[], roles: readonly string[]): string {
  const size = (role: string) => counts.reduce((sum, each) => sum + (each.get(role) ?? 0), 0);
  return roles.reduce((largest, role) => (size(role) > size(largest) ? role : largest));
}

/** The revision of a draw in [0, 1), revisions in the order of their names; undefined when none has a share. */
export function drawRevision(shares: ReadonlyMap<string, number>, draw: number): string | undefined {
  const candidates = [...shares].filter(([, share]) => share > 0).sort(([a], [b]) => (a < b ? -1 : 1));
  const all = candidates.reduce((sum, [, share]) => sum + share, 0);
  let left = draw * all;
  for (const [revision, share] of candidates) {
    if (left < share) return revision;
    left -= share;
  }
  return candidates.at(-1)?.[0];
}
