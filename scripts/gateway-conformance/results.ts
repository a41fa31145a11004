/** One line for each test of the suite that the log of `go test -v` names, and their sum. */
export function resultsOf(log: string): string {
  const lines = log.match(/^ {4}--- (PASS|FAIL|SKIP): TestConformance\/\S+ \(.*\)$/gm) ?? [];
  const count = (word: string) => lines.filter((line) => line.includes(`--- ${word}`)).length;
  const results = lines.map((line) => line.trim().replace('--- ', '').replace('TestConformance/', ''));
  return [...results, `${count('PASS')} of ${lines.length - count('SKIP')} tests pass`].join('\n');
}
