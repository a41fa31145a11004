// The core that a test file runs on. Tests run on the debug core, whose assertions and checks find what a test does not
// look at; the pickers that a test starts as processes inherit it. The rooms of RELEASE, whose pickers serve a real
// Envoy and a real API server, run on the core that is shipped. A value of POINTSMAN_CORE from outside holds for all of
// them.
import { expect } from 'vitest';

const RELEASE: readonly string[] = ['envoy', 'kubernetes'];
const { testPath = '' } = expect.getState();

process.env.POINTSMAN_CORE ??= RELEASE.some((room) => testPath.includes(`/test/${room}/`)) ? 'release' : 'debug';
