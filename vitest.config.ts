import { defineConfig } from 'vitest/config';
import { CountingReporter } from './test/project/counting-reporter.ts';

/**
 * Run by `npm run test:stress`, and every week by .github/workflows/stress.yml: the first asks for times, the other
 * changes a pool, and replaces its picker and engines, under load for minutes.
 */
export const LONG_TESTS: readonly string[] = [
  'test/envoy/overload-timing.test.ts',
  'test/kubernetes/end-to-end.test.ts',
];

/** They have a command of their own: npm run test:engines. */
const LIVE_ENGINES = 'test/engines/live/**';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: process.env.POINTSMAN_STRESS ? [LIVE_ENGINES] : [LIVE_ENGINES, ...LONG_TESTS],
    // An API server for the tests that ask for one; nothing is started without them.
    globalSetup: ['test/kubernetes/shared-server.ts'],
    setupFiles: ['test/project/property-seed.ts', 'test/project/debug-core.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // A run of all tests starts some hundred real processes on a machine that may be short of time. What passes at its
    // second attempt only is named above the counts. Property tests draw the same cases again, and so fail again.
    retry: process.env.CI ? 1 : 0,
    reporters: ['default', new CountingReporter()],
  },
});
