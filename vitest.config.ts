import { defineConfig } from 'vitest/config';
import { CountingReporter } from './test/project/counting-reporter.ts';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/project/property-seed.ts'],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ['default', new CountingReporter()],
  },
});
