import { RandomStream } from '../fleet/random-stream.js';
import type { Clients, Session, Workload } from '../fleet/workload.js';
import type { GeneratorContext } from '../workloads/generator.js';
import { workloadKinds } from '../workloads/kinds.js';
import { ContentIds, GrowingText } from '../workloads/text.js';
import type { Suite, SuiteWorkload } from './schema.js';

/**
 * The traffic of one workload of a suite. Equal seed, equal traffic.
 * @param read reads a trace
 * @param load factor on its rate
 * @throws Error when a trace cannot be read or a part names no workload
 */
export function workloadOf(
  suite: Suite,
  name: string,
  seed: number,
  read: (path: string) => string,
  load = 1,
): Workload {
  const ids = new ContentIds();
  const chosen = workloadNamed(suite, name);
  const factor = load * ('load' in chosen ? chosen.load : 1);
  const parts = partsOf(suite, chosen).map((part) => ({ ...part, workload: atLoad(part.workload, factor) }));
  const made = parts.map(({ workload, startSeconds, seconds }, part): Made => {
    const random = () => new RandomStream(seed, `${part} ${workload.name}`);
    const context = { blockTokens: suite.blockTokens, ids, text: () => new GrowingText(suite.blockTokens, ids), read };
    const own = (session: Session) => ({ ...session, ...ownFields(workload), part });
    const { concurrency } = workload as { readonly concurrency?: number };
    if (concurrency === undefined) {
      const sessions = generate(workload, { ...context, seconds, random: random() });
      const later = ({ startMs }: Session) => ({ startMs: startMs + startSeconds * 1e3 });
      return { sessions: sessions.map((session) => ({ ...own(session), ...later(session) })), clients: [] };
    }
    const endless = sessionsFor(workload, concurrency, seconds, (rate, length) =>
      generate({ ...workload, ...rate } as SuiteWorkload, { ...context, seconds: length, random: random() }),
    );
    return { sessions: [], clients: [{ count: concurrency, sessions: endless.map(own) }] };
  });
  const sessions = made.flatMap((part) => part.sessions).sort((a, b) => a.startMs - b.startMs);
  const clients = made.flatMap((part) => part.clients);
  const endSeconds = Math.max(...parts.map(({ startSeconds, seconds }) => startSeconds + seconds));
  if (sessions.length + clients.length === 0) {
    throw new Error(`workload "${name}" has no request in ${endSeconds} seconds`);
  }
  return {
    blockTokens: suite.blockTokens,
    contents: ids.end + 1,
    sessions,
    parts: parts.map(({ workload }) => workload.name),
    ...(clients.length > 0 && { clients, endMs: endSeconds * 1e3 }),
  };
}

interface Made {
  readonly sessions: readonly Session[];
  readonly clients: readonly Clients[];
}

/** Fields that the sessions of a workload have in common. */
function ownFields(workload: SuiteWorkload): Partial<Session> {
  const { priority, tenant, only, anonymous } = workload as {
    readonly priority?: number;
    readonly tenant?: string;
    readonly only?: readonly number[];
    readonly anonymous?: boolean;
  };
  return {
    ...(priority !== undefined && { priority }),
    ...(tenant !== undefined && { tenant }),
    ...(only !== undefined && { endpoints: only }),
    ...(anonymous === true && { anonymous }),
  };
}

/** Shortest time of a token of an answer, in milliseconds. */
const TOKEN_MS_MIN = 5;
const DRAWN_FIRST = 64;

/** As many sessions as `clients` can play in `seconds` with the quickest answers; of a trace, all sessions. */
function sessionsFor(
  workload: SuiteWorkload,
  clients: number,
  seconds: number,
  draw: (rate: object, seconds: number) => Session[],
): readonly Session[] {
  if (!('rate' in workload)) {
    const found = draw({}, Number.MAX_SAFE_INTEGER);
    if (found.length > 0) return found;
    throw new Error(`workload "${workload.name}": its trace has no session for ${clients} clients to play`);
  }
  for (let count = clients + DRAWN_FIRST; ; count *= 2) {
    const found = draw({ rate: 1, variation: 1, curve: [] }, count);
    // A client may be anywhere in its first session.
    const rest = found.slice(clients);
    if (rest.reduce((sum, session) => sum + leastMs(session), 0) >= clients * seconds * 1e3) return found;
  }
}

function leastMs({ turns }: Session): number {
  return turns.reduce((sum, { thinkMs, outputTokens }) => sum + thinkMs + outputTokens * TOKEN_MS_MIN, 0);
}

function workloadNamed(suite: Suite, name: string): SuiteWorkload {
  const found = suite.workloads.find((workload) => workload.name === name);
  if (found !== undefined) return found;
  throw new Error(`there is no workload "${name}": the suite has ${suite.workloads.map((w) => w.name).join(', ')}`);
}

/** Workload from which `workload` takes its traffic. */
function trafficOf(suite: Suite, workload: SuiteWorkload): SuiteWorkload {
  if (workload.kind !== 'variant') return workload;
  const { of } = workload as Extract<SuiteWorkload, { kind: 'variant' }>;
  const base = workloadNamed(suite, of);
  if (base.kind === 'variant') throw new Error(`workload "${workload.name}": "${of}" is a variant itself`);
  return base;
}

interface Part {
  readonly workload: SuiteWorkload;
  readonly startSeconds: number;
  readonly seconds: number;
}

function partsOf(suite: Suite, named: SuiteWorkload): readonly Part[] {
  const workload = trafficOf(suite, named);
  const inner = (name: string) => {
    const found = trafficOf(suite, workloadNamed(suite, name));
    if (found.kind !== 'sequence' && found.kind !== 'together') return found;
    throw new Error(`workload "${workload.name}": "${name}" is put together from others itself`);
  };
  if (workload.kind === 'together') {
    const { parts, seconds } = workload as Extract<SuiteWorkload, { kind: 'together' }>;
    return parts.map((name) => ({ workload: inner(name), startSeconds: 0, seconds }));
  }
  if (workload.kind !== 'sequence') {
    const { seconds } = workload as Exclude<SuiteWorkload, { kind: 'variant' }>;
    return [{ workload, startSeconds: 0, seconds }];
  }
  const { parts } = workload as Extract<SuiteWorkload, { kind: 'sequence' }>;
  let startSeconds = 0;
  return parts.map((part) => {
    const found = inner(part.workload);
    if ('concurrency' in found && found.concurrency !== undefined) {
      throw new Error(`workload "${workload.name}": "${part.workload}" has clients without end: use it in "together"`);
    }
    startSeconds += part.seconds;
    return { workload: found, startSeconds: startSeconds - part.seconds, seconds: part.seconds };
  });
}

/** The workload at another rate, or with another number of clients; which requests come is drawn anew. */
function atLoad(workload: SuiteWorkload, factor: number): SuiteWorkload {
  const { rate, speedup, concurrency } = workload as {
    readonly rate?: number;
    readonly speedup?: number;
    readonly concurrency?: number;
  };
  const faster = {
    ...(rate && { rate: rate * factor }),
    ...(speedup && { speedup: speedup * factor }),
    ...(concurrency && { concurrency: Math.max(1, Math.round(concurrency * factor)) }),
  };
  return { ...workload, ...faster };
}

function generate(workload: SuiteWorkload, context: GeneratorContext): Session[] {
  const kind = workloadKinds.find((candidate) => candidate.kind === workload.kind)!;
  return kind.generate(workload as never, context);
}
