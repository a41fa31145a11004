// The protocol of judgements before the commit lock (assembly/load-journal.ts, assembly/scheduling/judgement.ts,
// standing-scores.ts) as a model that takes one atomic step at a time: deciders read the loads of two endpoints without
// the lock, or those that the journal has named since their last decision, and under the lock those again that it names
// then. A thread can be killed at any step; the control thread repairs and is not killed.
import type { Model, Step } from './explorer.ts';

export interface JournalScene {
  /**
   * What threads do: decide and charge; decide by loads that stand from an earlier decision; release a charge of
   * endpoint 0; change its signals and note it; or change any load without noting it.
   */
  readonly threads: readonly Kind[];
  /** Changes that the ring holds. */
  readonly ring: number;
  /** How many threads may be killed. */
  readonly deaths?: number;
  /** Something that is wrong with the protocol, to see that it is found. */
  readonly fault?:
    | 'notes before it writes'
    | 'counts after it reads'
    | 'repairs without a note'
    | 'forgets overflow'
    | 'trusts overwritten entries'
    | 'counts before it enters';
}

type Kind = 'decide' | 'stand' | 'release' | 'signals' | 'publish';

type Phase =
  | 'count'
  | 'entries'
  | 'hold'
  | 'read 0'
  | 'read 1'
  | 'lock'
  | 'confirm'
  | 'enter'
  | 'write'
  | 'cell'
  | 'note'
  | 'free'
  | 'done'
  | 'dead'
  | 'repair 0'
  | 'repair 1'
  | 'repaired';

interface Thread {
  phase: Phase;
  count: number;
  /** Loads that are read again; of a thread whose loads do not stand, both. */
  again: (0 | 1)[];
  readonly seen: [number, number];
  slot: 0 | 1;
}

interface State {
  /** Load columns, and the entries of the ledger that they are the sums of. */
  readonly loads: [number, number];
  readonly entries: [number, number];
  changes: number;
  /** The ring: the slot of a change stands in the cell of its number modulo the ring's length. */
  readonly cells: (0 | 1)[];
  /** Thread that holds the lock; -1 = nobody. */
  lock: number;
  deaths: number;
  /** A pick that was not the least loaded endpoint. */
  wrong: string | undefined;
  readonly threads: Thread[];
}

const NEXT: Readonly<Record<Kind, readonly Phase[]>> = {
  decide: ['count', 'read 0', 'read 1', 'lock', 'confirm', 'enter', 'write', 'cell', 'note', 'free', 'done'],
  stand: [
    ...(['count', 'entries', 'hold', 'read 0', 'read 1'] as const),
    ...(['lock', 'confirm', 'enter', 'write', 'cell', 'note', 'free', 'done'] as const),
  ],
  release: ['lock', 'enter', 'write', 'cell', 'note', 'free', 'done'],
  signals: ['lock', 'enter', 'write', 'cell', 'note', 'free', 'done'],
  publish: ['lock', 'enter', 'write', 'note', 'free', 'done'],
};

function phasesOf(kind: Kind, fault: JournalScene['fault']): readonly Phase[] {
  const phases = [...NEXT[kind]];
  if (fault === 'notes before it writes') {
    const at = phases.indexOf('write');
    [phases[at], phases[at + 1], phases[at + 2]] = ['cell', 'note', 'write'];
  }
  if (fault === 'counts before it enters' && phases.includes('cell')) {
    const at = phases.indexOf('cell');
    [phases[at], phases[at + 1]] = ['note', 'cell'];
  }
  if (fault === 'counts after it reads' && kind === 'decide') phases.splice(0, 3, 'read 0', 'read 1', 'count');
  return phases;
}

function noteAll(state: State, ring: number): void {
  state.changes += ring + 1;
}

const BOTH: readonly (0 | 1)[] = [0, 1];

/** What the ring's cells say of the changes from a number on. */
function entries(state: State, from: number, ring: number): (0 | 1)[] {
  return Array.from({ length: state.changes - from }, (_, i) => state.cells[(from + i) % ring] ?? 1);
}

/** Reads again what has changed since the count, picks, and compares with the loads as they are. */
function confirm(state: State, thread: Thread, { ring, fault }: JournalScene): void {
  const count = state.changes - thread.count;
  const last = Math.min(count, ring);
  const again = count <= ring || fault === 'forgets overflow' ? entries(state, state.changes - last, ring) : BOTH;
  for (const slot of again) thread.seen[slot] = state.loads[slot];
  thread.slot = thread.seen[1] < thread.seen[0] ? 1 : 0;
  if (state.loads[thread.slot] > Math.min(...state.loads))
    state.wrong = `a pick of ${thread.slot} does not see the loads ${state.loads}`;
}

function act(state: State, number: number, kind: Kind, scene: JournalScene): void {
  const thread = state.threads[number]!;
  const by = kind === 'release' ? -1 : kind === 'signals' ? 2 : 1;
  if (kind === 'publish' || kind === 'signals') thread.slot = 0;
  switch (thread.phase) {
    case 'count':
      thread.count = state.changes;
      break;
    case 'entries':
      // The loads stand as of change 0.
      thread.again = thread.count > scene.ring ? [0, 1] : entries({ ...state, changes: thread.count }, 0, scene.ring);
      break;
    case 'hold':
      if (state.changes >= scene.ring && scene.fault !== 'trusts overwritten entries') thread.again = [0, 1];
      break;
    case 'read 0':
      if (thread.again.includes(0)) thread.seen[0] = state.loads[0];
      break;
    case 'read 1':
      if (thread.again.includes(1)) thread.seen[1] = state.loads[1];
      break;
    case 'lock':
      state.lock = number;
      break;
    case 'confirm':
      confirm(state, thread, scene);
      break;
    case 'enter':
      state.entries[thread.slot] += by;
      break;
    case 'write':
      state.loads[thread.slot] += by;
      break;
    case 'cell':
      state.cells[state.changes % scene.ring] = thread.slot;
      break;
    case 'note':
      if (kind === 'publish') noteAll(state, scene.ring);
      else state.changes++;
      break;
    case 'free':
      state.lock = -1;
      break;
  }
}

/** Steps of the control thread for a thread that was killed while it held the lock. */
function repair(state: State, number: number, { ring, fault }: JournalScene): void {
  const thread = state.threads[number]!;
  if (thread.phase === 'dead') {
    state.loads[0] = state.entries[0];
    thread.phase = 'repair 0';
  } else if (thread.phase === 'repair 0') {
    state.loads[1] = state.entries[1];
    thread.phase = 'repair 1';
  } else {
    if (fault !== 'repairs without a note') noteAll(state, ring);
    state.lock = -1;
    thread.phase = 'repaired';
  }
}

const REPAIRS: readonly Phase[] = ['dead', 'repair 0', 'repair 1'];

export function journalProtocol(scene: JournalScene): Model<State> {
  const phases = scene.threads.map((kind) => phasesOf(kind, scene.fault));
  return {
    start: {
      loads: [1, 1],
      entries: [1, 1],
      changes: 0,
      cells: [],
      lock: -1,
      deaths: scene.deaths ?? 0,
      wrong: undefined,
      threads: phases.map((own) => ({ phase: own[0]!, count: 0, again: [0, 1], seen: [1, 1], slot: 0 })),
    },
    steps: (state) => {
      const steps: Step<State>[] = [];
      for (const [number, { phase }] of state.threads.entries()) {
        if (REPAIRS.includes(phase)) {
          if (state.lock === number)
            steps.push({ name: `repair ${number}`, own: true, take: (next) => repair(next, number, scene) });
          continue;
        }
        const own = phases[number]!;
        const at = own.indexOf(phase);
        if (at < 0 || phase === 'done') continue;
        if (phase !== 'lock' || state.lock === -1)
          steps.push({
            name: `thread ${number}: ${phase}`,
            own: true,
            take: (next) => {
              act(next, number, scene.threads[number]!, scene);
              next.threads[number]!.phase = own[at + 1]!;
            },
          });
        if (state.deaths > 0)
          steps.push({
            name: `thread ${number} is killed`,
            own: false,
            take: (next) => {
              next.threads[number]!.phase = 'dead';
              next.deaths--;
            },
          });
      }
      return steps;
    },
    copy: (state) => structuredClone(state),
    key: (state) => JSON.stringify(state),
    broken: (state) => state.wrong,
    stuck: (state) => {
      if (state.lock !== -1) return `thread ${state.lock} keeps the lock`;
      return String(state.loads) === String(state.entries) ? undefined : `the loads ${state.loads} are no sums`;
    },
  };
}
