import { cachedDataVersionTag } from 'node:v8';
import { expect, test } from 'vitest';
import { HeldFlag } from '../../dist/src/runtime/held-flags.js';

/** V8 gives another tag to code for each set of flags. */
const tag = () => cachedDataVersionTag();

test('a held flag is changed until the last hold has ended, and a hold ends once', () => {
  const flag = new HeldFlag('--semi-space-growth-factor=1', '--semi-space-growth-factor=2');
  const before = tag();
  const first = flag.hold();
  const second = flag.hold();
  const changed = tag();
  first();
  first();
  expect([tag() === changed, changed === before]).toEqual([true, false]);
  second();
  expect(tag()).toBe(before);
});
