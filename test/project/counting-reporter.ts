import { writeFileSync } from 'node:fs';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

/**
 * Ends a run with the line `N passed, N failed, N skipped`, and writes it to the file that POINTSMAN_TEST_COUNTS names.
 * A file that fails before its tests are known and an error outside every test count as one failure each. Above it is
 * a line for each test that failed once and passed at its second attempt: such a test is unsteady, and wants a cure.
 */
export class CountingReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    const line = countLine(modules, errors.length);
    const path = process.env.POINTSMAN_TEST_COUNTS;
    if (path) writeFileSync(path, `${line}\n`);
    const unsteady = modules.flatMap((module) => unsteadyLines(module));
    process.stdout.write([...unsteady, line].map((text) => `${text}\n`).join(''));
  }
}

function unsteadyLines(module: TestModule): string[] {
  return [...module.children.allTests()].filter((test) => test.diagnostic()?.flaky).map((test) => unsteadyLine(test));
}

function unsteadyLine(test: TestCase): string {
  const [first = ''] = (test.result().errors?.[0]?.message ?? '').split('\n');
  return `unsteady: ${test.module.relativeModuleId} > ${test.fullName}: passed at the second attempt, after "${first}"`;
}

/** @param stray errors outside every test. */
export function countLine(
  modules: readonly Pick<TestModule, 'children' | 'state' | 'errors'>[],
  stray: number,
): string {
  const counts = { passed: 0, failed: stray, skipped: 0 };
  for (const module of modules) {
    let failedHere = 0;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      if (state === 'pending') counts.skipped++;
      else counts[state]++;
      if (state === 'failed') failedHere++;
    }
    if (failedHere === 0 && module.state() === 'failed') counts.failed++;
  }
  return `${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`;
}
