import { RandomStream } from '../fleet/random-stream.js';
import type { Session, Workload } from '../fleet/workload.js';
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
  let startSeconds = 0;
  const sessions = parts.flatMap(({ workload, seconds }, part) => {
    const offset = startSeconds * 1e3;
    startSeconds += seconds;
    return generate(
      workload,
      seconds,
      new RandomStream(seed, `${part} ${workload.name}`),
      suite.blockTokens,
      ids,
      read,
    ).map((session) => ({ ...session, startMs: session.startMs + offset, part }));
  });
  if (sessions.length === 0) throw new Error(`workload "${name}" has no request in ${startSeconds} seconds`);
  return {
    blockTokens: suite.blockTokens,
    contents: ids.end + 1,
    sessions,
    parts: parts.map(({ workload }) => workload.name),
  };
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
  readonly seconds: number;
}

function partsOf(suite: Suite, named: SuiteWorkload): readonly Part[] {
  const workload = trafficOf(suite, named);
  if (workload.kind !== 'sequence') {
    const { seconds } = workload as Exclude<SuiteWorkload, { kind: 'variant' }>;
    return [{ workload, seconds }];
  }
  const { parts } = workload as Extract<SuiteWorkload, { kind: 'sequence' }>;
  return parts.map((part) => {
    const inner = trafficOf(suite, workloadNamed(suite, part.workload));
    if (inner.kind === 'sequence') throw new Error(`workload "${workload.name}": a part must not be a sequence itself`);
    return { workload: inner, seconds: part.seconds };
  });
}

/** The workload at another rate; which requests come, one after the other, is drawn anew. */
function atLoad(workload: SuiteWorkload, factor: number): SuiteWorkload {
  const { rate, speedup } = workload as { readonly rate?: number; readonly speedup?: number };
  const faster = { ...(rate && { rate: rate * factor }), ...(speedup && { speedup: speedup * factor }) };
  return { ...workload, ...faster };
}

function generate(
  workload: SuiteWorkload,
  seconds: number,
  random: RandomStream,
  blockTokens: number,
  ids: ContentIds,
  read: (path: string) => string,
): Session[] {
  const kind = workloadKinds.find((candidate) => candidate.kind === workload.kind)!;
  const text = () => new GrowingText(blockTokens, ids);
  return kind.generate(workload as never, { seconds, blockTokens, ids, random, text, read });
}
