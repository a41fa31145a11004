import { defineConfig } from 'vitest/config';
import { CountingReporter } from './test/project/counting-reporter.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Run on demand (POINTSMAN_STRESS=1 npm run unit -- test/envoy test/kubernetes): the first asks for times, the
    // others change a pool, and replace its picker and engines, under load for minutes.
    exclude: process.env.POINTSMAN_STRESS
      ? []
      : ['test/envoy/overload-timing.test.ts', 'test/kubernetes/end-to-end.test.ts'],
    // An API server for the tests that ask for one; nothing is started without them.
    globalSetup: ['test/kubernetes/shared-server.ts'],
    setupFiles: ['test/project/property-seed.ts', 'test/project/debug-core.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ['default', new CountingReporter()],
  },
});
