import { describe, expect, test } from 'vitest';
import { envoyBinary, skipReason } from './envoy.ts';
import { SMALLEST_WINDOWS } from './soak/proxy.ts';
import { faultsOf, soak } from './soak/soak.ts';

/** The traffic of `npm run soak`, shorter and with fewer streams. */
const TRAFFIC = {
  sizes: [
    { bytes: 4_096, share: 0.7 },
    { bytes: 400_000, share: 0.25 },
    { bytes: 1_000_000, share: 0.05 },
  ],
  streams: 300,
  rate: 150,
  waveMs: 5_000,
  resets: 0.15,
  trailers: 0.3,
  slowReaders: 0.05,
};

describe.skipIf(skipReason !== '')(`A picker behind Envoy with windows of 64 KB${skipReason}`, () => {
  test('a picker holds no stream, no slot and no charge when all requests have ended or were reset', async () => {
    const transport = process.env.POINTSMAN_TEST_TRANSPORT === 'grpc-js' ? 'grpc-js' : 'lean';
    const options = {
      envoy: envoyBinary!,
      seconds: 20,
      transport,
      windows: SMALLEST_WINDOWS,
      traffic: TRAFFIC,
      burst: 0,
      restMs: 0,
    } as const;
    const result = await soak(options);
    expect(faultsOf(result)).toEqual([]);
  }, 180_000);
});
