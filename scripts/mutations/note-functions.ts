// Setup of a test file: writes which functions of a covered core (core-coverage.ts) it has run, as their numbers, to
// the file that CORE_COVERAGE names. Threads of a test write into the same memories.
import { writeFileSync } from 'node:fs';
import { afterAll } from 'vitest';
import { LAST_CELL } from './core-coverage.ts';

/** Memories that are kept open, so that property tests with thousands of pools do not hold them all. */
const OPEN_MAX = 8;

const open: WebAssembly.Memory[] = [];
const seen = new Set<number>();

function read({ buffer }: WebAssembly.Memory): void {
  const cells = new Uint8Array(buffer, 0, LAST_CELL + 1);
  for (let at = LAST_CELL; at > LAST_CELL / 2; at--) if (cells[at] !== 0) seen.add(LAST_CELL - at);
}

WebAssembly.Memory = class extends WebAssembly.Memory {
  constructor(descriptor: ConstructorParameters<typeof WebAssembly.Memory>[0]) {
    super(descriptor);
    open.push(this);
    if (open.length > OPEN_MAX) read(open.shift()!);
  }
};

afterAll(() => {
  open.forEach(read);
  writeFileSync(process.env.CORE_COVERAGE!, JSON.stringify([...seen]));
});
