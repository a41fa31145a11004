// How many pickers a pool has by its requests a second: `npm run build && node scripts/fleet-size.ts [--rate 1000000]
// [--write]`.
//
// Measures the CPU time of an exchange with a whole picker, and what a request costs each of four replicas with
// scripts/measure-growth.ts, and prints the table of docs/internals/replication.md; --write puts it into the page. What
// is given is not measured: --exchange-us, --shared-us with --bytes.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type LoadShape, measureLoad, OWN_COMMAND } from '../bench/process/load.ts';
import { fleetText } from './fleet-arithmetic.ts';
import { renew } from './performance-doc.ts';

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '1000000' },
    write: { type: 'boolean', default: false },
    'exchange-us': { type: 'string' },
    'shared-us': { type: 'string' },
    bytes: { type: 'string' },
  },
});
const SHAPE: LoadShape = { promptBytes: 4_096, chunks: 1, endpoints: 64, concurrency: 16 };
const TIMES = { warmMs: 8_000, measuredMs: 8_000 };
const GROWTH = ['--replicas', '4', '--rate', '10000', '--seconds', '2', '--warm', '3', '--json'];
const page = join(import.meta.dirname, '../docs/internals/replication.md');

function given(name: 'rate' | 'exchange-us' | 'shared-us' | 'bytes'): number | undefined {
  const text = values[name];
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!(value > 0)) throw new Error(`--${name}: expected a number above 0, got "${text}"`);
  return value;
}

interface Growth {
  readonly microseconds: number;
  readonly bytes: number;
}

function growth(): Growth {
  const file = join(import.meta.dirname, 'measure-growth.ts');
  const text = execFileSync(process.execPath, [file, ...GROWTH], { encoding: 'utf8' });
  return JSON.parse(text) as Growth;
}

const rate = given('rate')!;
const exchangeUs = given('exchange-us') ?? (await measureLoad(OWN_COMMAND, SHAPE, TIMES)).cpuUs;
const [sharedUs, bytes] = [given('shared-us'), given('bytes')];
const { microseconds, bytes: sent } =
  sharedUs !== undefined && bytes !== undefined ? { microseconds: sharedUs, bytes } : growth();
/** To the digits that the page has, so that its table is that of the figures above it. */
const short = (value: number) => Number(value.toPrecision(3));
const parts = { exchangeUs: short(exchangeUs), sharedUs: short(sharedUs ?? microseconds), bytes: short(bytes ?? sent) };
const text = fleetText(rate, parts);
console.log(text);
if (values.write) writeFileSync(page, renew(readFileSync(page, 'utf8'), text));
