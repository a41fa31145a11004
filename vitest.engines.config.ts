import { defineConfig } from 'vitest/config';
import { CountingReporter } from './test/project/counting-reporter.ts';

/** Tests with real engines (`npm run test:engines`): minutes, and two engines at a time. */
export default defineConfig({
  test: {
    include: ['test/engines/live/*.test.ts'],
    setupFiles: ['test/project/debug-core.ts'],
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 600_000,
    reporters: ['default', new CountingReporter()],
  },
});
