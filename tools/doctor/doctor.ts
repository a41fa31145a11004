import { setTimeout as pause } from 'node:timers/promises';
import { Command, InvalidArgumentError } from 'commander';
import { HEALTH_PATH, type HealthReport } from '../../src/operations/health-report.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { askPicker, type PickerAddressFlags, withPickerAddress } from '../command-line/picker-pages.js';
import type { PickerReading } from './condition.js';
import { diagnosis, exitCodeOf } from './diagnosis.js';
import { doctorText } from './doctor-text.js';
import { ofPool, readSamples, type Samples } from './exposition.js';

interface DoctorFlags extends PickerAddressFlags {
  readonly json: boolean;
  readonly all: boolean;
  /** Seconds between two readings. */
  readonly seconds: number;
}

/**
 * `pointsman doctor`: conditions of a running picker that need attention.
 * @returns the exit code, by the worst condition
 */
export async function runDoctor(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<DoctorFlags>(doctorCommand(), argv);
  if (parsed === undefined) return 0;
  const { options: flags } = parsed;
  const reading = await readPicker(flags);
  const conditions = diagnosis(reading);
  const report = { conditions, health: reading.health, clock: reading.clock };
  process.stdout.write(
    flags.json ? `${JSON.stringify(report, undefined, 2)}\n` : doctorText(reading, conditions, flags.all),
  );
  return exitCodeOf(conditions);
}

function doctorCommand(): Command {
  return withPickerAddress(new Command('pointsman doctor'))
    .description('What is wrong or odd with a running picker, in about ten lines.')
    .option('--seconds <count>', 'time between two readings of its counters; 0 = read once', interval, 2)
    .option('--all', 'show every condition', false)
    .option('--json', 'print one JSON document', false)
    .addHelpText('after', '\nExit code: 0 nothing but notes, 1 warnings or no picker, 2 errors.\n');
}

function interval(text: string): number {
  const seconds = Number(text);
  if (!(text !== '' && seconds >= 0 && seconds <= 600))
    throw new InvalidArgumentError('expected a number from 0 to 600');
  return seconds;
}

async function readPicker(flags: DoctorFlags): Promise<PickerReading> {
  const earlier = flags.seconds === 0 ? undefined : await metrics(flags);
  if (earlier !== undefined) await pause(flags.seconds * 1000);
  const asked = Date.now();
  const { value: health, why } = await page<HealthReport>(flags, HEALTH_PATH);
  const answered = Date.now();
  const { value: queues } = await page<QueuePage>(flags, '/debug/flow-control');
  const { pools = [], problem } = (await page<PoolsPage>(flags, '/debug/pools')).value ?? {};
  const pool = flags.pool ?? health?.pool ?? '';
  const samples = await metrics(flags);
  return {
    samples: ofPool(samples, pool),
    earlier: earlier && ofPool(earlier, pool),
    otherPools: pools.filter(({ name, unready: reasons }) => name !== pool && reasons.length > 0),
    poolsProblem: problem ?? undefined,
    health,
    unreadable: why,
    waiting: queues && waitingOf(queues),
    clock: health && { skewMs: health.timeMs - (asked + answered) / 2, uncertainMs: (answered - asked) / 2 },
  };
}

/** `/debug/pools` of a picker that serves several. */
interface PoolsPage {
  readonly pools: readonly { readonly name: string; readonly unready: readonly string[] }[];
  readonly problem?: string | null;
}

/** The part of `/debug/flow-control` that is read. */
interface QueuePage {
  readonly waiting: number;
  readonly whyTheHeadWaits?: string;
  readonly bands: readonly { readonly flows: readonly { readonly headAgeMs?: number }[] }[];
  readonly endpoints: readonly { readonly closedBy: readonly string[] }[];
}

function waitingOf({ waiting, whyTheHeadWaits: why, bands, endpoints }: QueuePage): PickerReading['waiting'] {
  if (why === undefined) return undefined;
  const ages = bands.flatMap(({ flows }) => flows.map(({ headAgeMs }) => headAgeMs ?? 0));
  const isFull = endpoints.length > 0 && endpoints.every(({ closedBy }) => closedBy.length > 0);
  return { count: waiting, why, isFull, longestMs: Math.max(0, ...ages) };
}

async function metrics(flags: DoctorFlags): Promise<Samples> {
  const answer = await askPicker(flags, '/metrics');
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${flags.picker.origin}/metrics: ${answer.status}: ${text.trim()}`);
  return readSamples(text);
}

/** A debug page; without a value when it may not be read, or the picker has none. */
async function page<Value>(
  flags: DoctorFlags,
  path: string,
): Promise<{ readonly value?: Value; readonly why?: string }> {
  const answer = await askPicker(flags, path);
  const text = await answer.text();
  return answer.ok ? { value: JSON.parse(text) as Value } : { why: `${path}: ${answer.status} ${text.trim()}` };
}
