// Configuration of a test of a mutant: the one of all tests. Where CORE_COVERAGE names a file, the test writes there
// which functions of the core it has run.
import { defineConfig, mergeConfig } from 'vitest/config';
import base from '../../vitest.config.ts';

export default mergeConfig(
  base,
  defineConfig({
    test: {
      setupFiles: process.env.CORE_COVERAGE === undefined ? [] : ['scripts/mutations/note-functions.ts'],
    },
  }),
);
