// Chapters of docs/adaptation-results.md: the suite, the policies and the tables of each, and the words around them.
import type { Suite } from '../../dist/tools/simulator/suite/schema.js';
import { againstBestRule, againstDefault, atLoads, LOADS } from './goal.ts';
import { switching } from './switching.ts';
import {
  capacity,
  classes,
  conditions,
  everyPolicy,
  matrix,
  metrics,
  type Results,
  speeds,
  standing,
  truths,
} from './tables.ts';

export interface Chapter {
  readonly name: string;
  readonly title: string;
  /** In examples/simulation/. */
  readonly file: string;
  /** Undefined = all of the suite. */
  readonly policies?: readonly string[];
  readonly workloads?: (name: string) => boolean;
  /** What of the suite is run, and in which form. */
  readonly suite?: (suite: Suite) => Suite;
  /** Run when the other chapters have all of their seeds. */
  readonly late?: boolean;
  readonly text: string;
  readonly tables: readonly ((results: Results) => string)[];
}

/** Rules that anybody can write down, of which the best in hindsight is the measure. */
const SIMPLE = ['sticky', 'fewest-tokens', 'lmetric', 'least-request'];
/** Fleets of the goal, by the ends of the names of their workloads. */
const isFleet = (name: string) => / (on 4|on 32|mixed)$/.test(name);

const GOAL_TEXT = `
Learned costs against the default (queue 2, KV 2, prefix 3), and TTFT p99 as a multiple of the default's.
100 % is about the load at which the default leaves one request in ten outside of its objectives; of agents,
that at which their contexts fill the KV caches.`;

export const CHAPTERS: readonly Chapter[] = [
  {
    name: 'goal',
    title: 'The goal, by workload and load',
    file: 'goal.yaml',
    policies: ['learned', ...SIMPLE],
    workloads: (name) => !isFleet(name),
    suite: (suite) => atLoads(suite, LOADS),
    text: GOAL_TEXT,
    tables: [againstDefault, againstBestRule],
  },
  {
    name: 'fleets',
    title: 'Other fleets',
    file: 'goal.yaml',
    policies: ['learned', ...SIMPLE],
    workloads: isFleet,
    suite: (suite) => atLoads(suite, LOADS),
    text: `The same for four and for 32 servers, with half and four times the load, and for a mixed fleet of eight,
four of which have half the speed (three quarters of the load).`,
    tables: [againstDefault, againstBestRule],
  },
  {
    name: 'guard',
    title: 'Under the guard: when learned costs are switched on, and what it costs until then',
    file: 'switching-on.yaml',
    text: `\`mode: auto\` from a cold start. *Switched on* is the time at which the guard's state became \`active\`,
the median of the seeds with the range. *While undecided* is the cost of all requests that came before that
against those of the default with the same seed, with the 95 % interval; *after* the same of the later ones.
*Always* is \`mode: always\` over the whole run.`,
    tables: [switching],
  },
  {
    name: 'metrics',
    title: 'All metrics at full load',
    file: 'goal.yaml',
    policies: ['learned', ...SIMPLE],
    workloads: (name) => !isFleet(name),
    text: `Milliseconds, mean over the seeds. The second row of a workload is the best simple rule in hindsight where
it is not the default.`,
    tables: [metrics],
  },
  {
    name: 'speeds',
    title: 'How soon it adapts',
    file: 'goal.yaml',
    policies: ['learned'],
    workloads: (name) => /^(S1|S2|H1) /.test(name),
    text: `Parts of the shifts: lasting gain, and the time after the shift until a window of 30 s had nine tenths of
it.`,
    tables: [speeds],
  },
  {
    name: 'tight-memory',
    title: 'Small agents on little memory',
    file: 'tight-memory.yaml',
    text: `Four \`llama-8b-l40s\` servers of 160,000 KV tokens, 3,000 tokens in, 450 out, a fixed number of clients.
From 95 % on running requests fill the KV caches. The price of memory was chosen on the first three seeds of
almost the same traffic.`,
    tables: [everyPolicy],
  },
  {
    name: 'rivals',
    late: true,
    title: 'All rivals',
    file: 'goal.yaml',
    workloads: (name) => !isFleet(name),
    text: `\`constant-oracle\` is no rule but a reference: marginal cost with the true constants, caches and load known
at once. \`shortest-ttft\`, \`gorgo\`, \`ducb-4\` and \`projected\` learn as well.`,
    tables: [matrix, standing],
  },
  {
    name: 'conditions',
    late: true,
    title: 'Conditions',
    file: 'conditions.yaml',
    policies: ['learned', 'guarded'],
    text: `Tool calls while servers are throttled, crash or come and go (H, F), knowledge is old or split (K), or
labels are bad (P); × is the cost over that of the same policy under usual conditions.`,
    tables: [conditions],
  },
  {
    name: 'classes',
    late: true,
    title: 'Hardware classes',
    file: 'classes.yaml',
    text: `Two kinds of machine in one pool, without and with the label that gives each its own coefficients. An A100
takes 2.9 times as long as an H100 for a prompt token and 1.8 times for an output token. *Equal by two
names*: equal machines with two labels, where classes can only cost.`,
    tables: [classes],
  },
  {
    name: 'ablations',
    late: true,
    title: 'What each part is worth',
    file: 'ablations.yaml',
    text: 'One part of the cost taken away, or done otherwise, against `learned`.',
    tables: [matrix],
  },
  {
    name: 'capacity',
    late: true,
    title: 'How much load is carried',
    file: 'capacity.yaml',
    policies: ['learned'],
    text: `The most requests a second of which nine in ten meet both objectives, by bisection of a range from half to
twice in six halvings.`,
    tables: [capacity],
  },
  {
    name: 'truths',
    late: true,
    title: 'Another truth',
    file: 'truths.yaml',
    text: `The step time by the fitted formula, and by a table of measurements (eight RTX PRO 6000): whether eleven
policies rank alike.`,
    tables: [truths],
  },
];
