import type { CompiledProfile, HookPluginSettings, ProgramOperation } from '../../src/scheduling/program.js';
import { operationKind } from '../command-line/program-text.js';
import type { BenchPool } from './bench-pool.js';
import type { HookCalls } from './hook-calls.js';
import type { Subject } from './paired-samples.js';

export type RowKind = 'whole' | 'match' | 'hooks' | ReturnType<typeof operationKind>;

/** A line of the table. */
export interface BenchRow {
  /** Plugin as configured, after its profile where there are several; or `decision`, `match`. */
  readonly name: string;
  /** Type of the plugin; empty for what is no plugin. */
  readonly type: string;
  readonly kind: RowKind;
  readonly subject: Subject;
  /** Work to subtract: the same without the plugin; undefined = nothing. */
  readonly without: Subject | undefined;
}

/** Rows of a configuration: the whole decision, then its parts in the order in which they run. */
export function benchRows(pool: BenchPool, hooks: ReadonlyMap<string, HookCalls>): readonly BenchRow[] {
  const { profiles, host } = pool.configuration.scheduling;
  const types = pluginTypes(pool);
  return profiles.flatMap((profile) => {
    const named = (name: string) => (profiles.length === 1 ? name : `${profile.name}/${name}`);
    return [
      { name: named('decision'), type: '', kind: 'whole', subject: wholeDecision(pool, profile), without: undefined },
      ...(pool.blocks === 0 ? [] : [matchRow(pool, named('match'))]),
      ...host
        .filter((settings) => settings.profiles.includes(profile.name))
        .map((settings) => hookRow(settings, hooks.get(settings.name)!, profile.name, named(settings.name))),
      ...profile.operations.map((operation) =>
        operationRow(pool, profile, operation, named(operation.name), types.get(operation.name) ?? ''),
      ),
    ] satisfies BenchRow[];
  });
}

/** One line for each profile whose filters leave no endpoint of this pool, so that its later operations never run. */
export function undecidedProfiles(pool: BenchPool, hooks: ReadonlyMap<string, HookCalls>): readonly string[] {
  const { profiles, host } = pool.configuration.scheduling;
  return profiles.flatMap(({ name, operations }) => {
    for (const settings of host) if (settings.profiles.includes(name)) hooks.get(settings.name)!.request(name);
    pool.publish(operations);
    const { status } = pool.decideOnly();
    return status === 'decided' ? [] : [`profile "${name}" places no request in this pool (${status})`];
  });
}

function pluginTypes(pool: BenchPool): ReadonlyMap<string, string> {
  return new Map(pool.configuration.effective.plugins.map(({ name, type }) => [name, type]));
}

/** Runs `run` under a program. */
function under(pool: BenchPool, operations: readonly ProgramOperation[], run: () => void): Subject {
  return {
    prepare: () => pool.publish(operations),
    run(times) {
      for (let i = 0; i < times; i++) run();
    },
  };
}

function wholeDecision(pool: BenchPool, { operations }: CompiledProfile): Subject {
  return under(pool, operations, () => pool.decideAndRelease());
}

function matchRow(pool: BenchPool, name: string): BenchRow {
  const subject = under(pool, [], () => pool.match());
  return { name, type: '', kind: 'match', subject, without: under(pool, [], () => pool.nextPrompt()) };
}

function hookRow({ type }: HookPluginSettings, calls: HookCalls, profile: string, name: string): BenchRow {
  const subject: Subject = {
    prepare: () => {},
    run(times) {
      for (let i = 0; i < times; i++) calls.request(profile);
    },
  };
  return { name, type, kind: 'hooks', subject, without: undefined };
}

function operationRow(
  pool: BenchPool,
  { operations }: CompiledProfile,
  operation: ProgramOperation,
  name: string,
  type: string,
): BenchRow {
  const decide = () => void pool.decideOnly();
  const others = operations.filter((other) => other !== operation);
  const kind = operationKind(operation);
  return { name, type, kind, subject: under(pool, operations, decide), without: under(pool, others, decide) };
}
