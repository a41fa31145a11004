/** One request of a session. */
export interface Turn {
  readonly promptTokens: number;
  /** At least 1. */
  readonly outputTokens: number;
  /** Contents of the full blocks of prompt and output. Equal ids = equal text up to the block's end. */
  readonly chain: Int32Array;
  /** Milliseconds between the end of the turn before and this one. */
  readonly thinkMs: number;
  /** Sessions that begin with the end of this turn; the next turn comes after all of them have ended. */
  readonly spawns?: readonly Session[];
}

/** Requests of one client, one after the other; an open-loop request is a session of one turn. */
export interface Session {
  readonly startMs: number;
  readonly turns: readonly Turn[];
  /** Part of the workload that it belongs to: reports show parts apart. */
  readonly part: number;
  /** Priority of its requests, absent = 0, and the tenant that they belong to, absent = none. */
  readonly priority?: number;
  readonly tenant?: string;
  /** Endpoints that may serve the request, by number; absent = all. */
  readonly endpoints?: readonly number[];
  /** Whether its client names it in no header. */
  readonly anonymous?: boolean;
}

/** A fixed number of clients. Each plays one session after the other, and takes the next of the list when one ends. */
export interface Clients {
  readonly count: number;
  /** Taken in this order, again and again. */
  readonly sessions: readonly Session[];
}

/** Traffic of one run. */
export interface Workload {
  /** Tokens of the blocks that chains consist of. */
  readonly blockTokens: number;
  /** One more than the largest content id. */
  readonly contents: number;
  /** By rising start. */
  readonly sessions: readonly Session[];
  /** Names of the parts. */
  readonly parts: readonly string[];
  /** Fixed numbers of clients, whose traffic ends with the run only. */
  readonly clients?: readonly Clients[];
  /** Milliseconds at which the run ends, whatever is under way; absent = with the last request. */
  readonly endMs?: number;
}

/** Number of a workload's requests; that of clients is bounded by time alone. */
export function requestsOf({ sessions }: Pick<Workload, 'sessions'>): number {
  return sessions.reduce((sum, { turns }) => sum + turnsOf(turns), 0);
}

function turnsOf(turns: readonly Turn[]): number {
  return turns.reduce((sum, { spawns = [] }) => sum + 1 + requestsOf({ sessions: spawns }), 0);
}

export function meanOutputTokens({ sessions, clients = [] }: Workload): number {
  const all = [...sessions, ...clients.flatMap((group) => group.sessions)];
  const tokens = all.reduce(
    (sum, { turns }) => sum + turns.reduce((own, { outputTokens }) => own + outputTokens, 0),
    0,
  );
  return (
    tokens /
    Math.max(
      1,
      all.reduce((sum, { turns }) => sum + turns.length, 0),
    )
  );
}

/** Prompt tokens that an endless cache would have held already, over all prompt tokens. */
export function idealHitRatio(workload: Workload): number {
  const seen = new Uint8Array(workload.contents);
  let hits = 0;
  let tokens = 0;
  for (const turn of inOrder(workload)) {
    const whole = Math.floor((turn.promptTokens - 1) / workload.blockTokens);
    let run = 0;
    while (run < whole && seen[turn.chain[run]!] === 1) run++;
    hits += run * workload.blockTokens;
    tokens += turn.promptTokens;
    for (const content of turn.chain) seen[content] = 1;
  }
  return tokens === 0 ? 0 : hits / tokens;
}

/** Turns in the order of sessions' starts; think times shift later turns. */
function inOrder({ sessions }: Workload): readonly Turn[] {
  const timed = sessions.flatMap(({ startMs, turns }) => {
    let at = startMs;
    return turns.map((turn) => {
      at += turn.thinkMs;
      return { at, turn };
    });
  });
  return timed.sort((a, b) => a.at - b.at).map(({ turn }) => turn);
}
