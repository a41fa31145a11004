// Runs a picker behind Envoy for minutes and asks what it holds then: `npm run soak -- [--minutes 10] [--transport
// lean|grpc-js] [--scenario mixed|memory] [--streams 10000] [--rate 300] [--wave 30] [--busy]`. Prints samples to
// standard error and the result as JSON to standard output; ends with exit code 1 when something was not released,
// requests failed, memory grew or garbage took too long.

import { parseArgs } from 'node:util';
import type { TransportName } from '../dist/src/contract/listen-settings.js';
import { findEnvoy } from '../dist/tools/demo/envoy-process.js';
import type { Outcome, Traffic } from '../test/envoy/soak/clients.ts';
import type { Figures } from '../test/envoy/soak/figures.ts';
import { EDGE_WINDOWS, type Windows } from '../test/envoy/soak/proxy.ts';
import { costsOf, faultsOf, soak } from '../test/envoy/soak/soak.ts';

interface Scenario {
  /** Of Envoy towards the picker; undefined = its own. */
  readonly windows: Windows | undefined;
  readonly traffic: Traffic;
  readonly burst: number;
  /** Bound on the resident memory at rest; undefined = none. */
  readonly rssMbMax: number | undefined;
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  /** All that ends a stream, with the number of open ones going up and down. */
  mixed: {
    windows: EDGE_WINDOWS,
    traffic: {
      sizes: [
        { bytes: 4_096, share: 0.8 },
        { bytes: 400_000, share: 0.15 },
        { bytes: 1_000_000, share: 0.05 },
      ],
      streams: 10_000,
      rate: 300,
      waveMs: 120_000,
      resets: 0.15,
      trailers: 0.3,
      slowReaders: 0.05,
    },
    burst: 0,
    rssMbMax: undefined,
  },
  /** A burst of 1,000, then long prompts: 12 minutes at 50 a second are an hour at 10. */
  memory: {
    windows: undefined,
    traffic: {
      sizes: [{ bytes: 400_000, share: 1 }],
      streams: 100,
      rate: 50,
      waveMs: 0,
      resets: 0.05,
      trailers: 0.3,
      slowReaders: 0,
    },
    burst: 1_000,
    rssMbMax: 220,
  },
};
/** For slabs to go back, which are looked at every 15 s. */
const REST_MS = 90_000;
const COLLECTION_SHARE_MAX = 0.02;
/** Between two samples that are printed. */
const PRINTED_SECONDS = 10;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    transport: { type: 'string', default: 'lean' },
    scenario: { type: 'string', default: 'mixed' },
    streams: { type: 'string' },
    rate: { type: 'string' },
    wave: { type: 'string' },
    /** The machine does other things: refusals and the share of garbage collections are shown and not judged. */
    busy: { type: 'boolean', default: false },
  },
});

function number(name: 'minutes' | 'streams' | 'rate' | 'wave', otherwise: number): number {
  const value = values[name] === undefined ? otherwise : Number(values[name]);
  if (!(value > 0)) throw new Error(`--${name}: must be a number above 0`);
  return value;
}

function transport(): TransportName {
  if (values.transport === 'lean' || values.transport === 'grpc-js') return values.transport;
  throw new Error('--transport: must be lean or grpc-js');
}

let printedAt = 0;
function print(figures: Figures & Readonly<Record<Outcome, number>>): void {
  if (figures.at - printedAt < PRINTED_SECONDS) return;
  printedAt = figures.at;
  console.error(
    JSON.stringify(figures, (_, value) => (typeof value === 'number' ? Math.round(value * 10) / 10 : value)),
  );
}

const envoy = findEnvoy();
if (envoy === undefined) throw new Error('no Envoy found: run scripts/install-envoy.sh or set ENVOY_BIN');
const scenario = SCENARIOS[values.scenario];
if (scenario === undefined) throw new Error(`--scenario: must be one of ${Object.keys(SCENARIOS).join(', ')}`);
const traffic = {
  ...scenario.traffic,
  streams: number('streams', scenario.traffic.streams),
  rate: number('rate', scenario.traffic.rate),
  waveMs: values.wave === undefined ? scenario.traffic.waveMs : 1_000 * number('wave', 0),
};
const { burst, rssMbMax, windows } = scenario;
const options = {
  envoy,
  transport: transport(),
  windows,
  traffic,
  burst,
  restMs: REST_MS,
  seconds: 60 * number('minutes', 10),
};
const result = await soak({ ...options, report: print });
const faults = [
  ...faultsOf(result),
  ...costsOf(result, {
    rssMb: rssMbMax,
    ...(values.busy
      ? { collectionShare: 1, refused: Infinity }
      : { collectionShare: COLLECTION_SHARE_MAX, refused: 0 }),
  }),
];
console.log(JSON.stringify({ ...values, traffic, ...result, faults }, undefined, 2));
process.exit(faults.length === 0 ? 0 : 1);
