// A seeded sample of the mutants of a room, and the tests that judge each.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { seededRandom } from '../../src/runtime/seeded-random.ts';
import { EQUIVALENT, type EquivalentMutant } from './equivalent.ts';
import { type Mutant, mutantsOf } from './mutants.ts';

export interface RoomMutant extends Mutant {
  readonly module: string;
}

/** Written by the build: its names are compared with the core by a test of their own. */
const GENERATED = /\/core-names\.js$/;

/** All mutants of the compiled modules of a room, by path and place. @throws Error when the room has no modules */
export function mutantsOfRoom(root: string, room: string): RoomMutant[] {
  const modules = globSync(`dist/src/${room}/**/*.js`, { cwd: root }).filter((path) => !GENERATED.test(path));
  if (modules.length === 0)
    throw new Error(`dist/src/${room} has no modules: run "npm run build", or name another room`);
  return modules.sort().flatMap((module) => {
    const text = readFileSync(join(root, module), 'utf8');
    return mutantsOf(text).map((mutant) => ({ ...mutant, module }));
  });
}

/** The reason for which no test can notice the mutant; undefined = one should. */
export function equivalentReason(
  { module, before, after }: RoomMutant,
  list: readonly EquivalentMutant[] = EQUIVALENT,
): string | undefined {
  return list.find((row) => row.module === module && row.before === before && row.after === after)?.reason;
}

/** `size` of the items, without repetition; equal seeds choose equal ones. */
export function sample<T>(items: readonly T[], size: number, seed: number): T[] {
  const random = seededRandom(seed);
  const left = [...items];
  return Array.from(
    { length: Math.min(size, left.length) },
    () => left.splice(Math.floor(random() * left.length), 1)[0]!,
  );
}
