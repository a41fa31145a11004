// The core that a test file runs on. Tests run on the debug core, whose assertions and checks find what a test does not look
// at. The rooms of RELEASE run on the core that is shipped: they start whole pickers as processes or long fleets and bound their
// time, and the real Envoy is among them. A value of POINTSMAN_CORE from outside holds for all of them.
import { expect } from 'vitest';

const RELEASE: readonly string[] = ['charts', 'cli', 'envoy', 'kubernetes', 'picker', 'simulator'];
const { testPath = '' } = expect.getState();

process.env.POINTSMAN_CORE ??= RELEASE.some((room) => testPath.includes(`/test/${room}/`)) ? 'release' : 'debug';
