import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

interface RefusedWord {
  readonly found: RegExp;
  /** The word that stands for the thing (docs/internals/words.md). */
  readonly word: string;
  /** Files that it is refused in, by the beginning of their path; absent = everywhere. */
  readonly within?: readonly string[];
  /** Lines that may hold it. */
  readonly except?: RegExp;
}

const REFUSED: readonly RefusedWord[] = [
  { found: /\bgiv(e|es|en|ing) back\b|\bgave back\b/i, word: 'release; return and free for what is no charge' },
  { found: /\blet(s|ting)? go\b|\bletGo\b/i, word: 'release' },
  { found: /\bmost[A-Z]\w*|\bMOST_\w+/, word: 'xMax, X_MAX' },
  { found: /\b(let|const) most\b|\bmost: [iuf](32|64)\b/, word: 'highest, longest, or xMax', within: ['assembly/'] },
  {
    found: /\blabels?\b/i,
    word: 'training sample',
    within: ['src/adaptation/', 'assembly/load/', 'assembly/response/'],
    except: /former name|labels: report|readonly labels:|readonly fit:/,
  },
  {
    found: /\b(training|learned|learner's) labels?\b|\blabel ring\b|\blabelRing\b/i,
    word: 'training sample, sample ring',
  },
  { found: /\b(let|const) spans?\b/, word: 'range, extent', within: ['assembly/', 'src/core/', 'src/request/'] },
  { found: /\bsister\b/i, word: 'peer' },
  { found: /\bdecision ring\b/i, word: 'decision log' },
  { found: /\bhost (plugin|filter|scorer)s?\b|\bhost-run\b/i, word: 'hook plugin' },
  { found: /\b[hH]osted\b/, word: 'hook request, hook plugin', within: ['src/ingress/', 'src/scheduling/'] },
  { found: /\bwedged\b/i, word: 'silent' },
  { found: /\brevo(ke|ked|cation|cable)\b/i, word: 'evict, evictable' },
  { found: /\bincumbent\b/i, word: 'llm-d-router' },
  { found: /\bwho(m)?ever\b/i, word: 'the thing by its name' },
  { found: /\bnobody['’]s\b/i, word: "no session's, or the thing that it belongs to" },
  { found: /\bwhat (became|becomes) of\b/i, word: 'outcome, effect' },
  { found: /\b(takeSpendings|isComing|goOn|DEAF|unfit|spoil)\b/, word: 'a name that says what it does' },
];

const FILES = globSync(
  ['{src,tools,assembly,scripts,bench,page,test}/**/*.ts', '{README,SECURITY}.md', 'docs/**/*.md'],
  { cwd: new URL('../../', import.meta.url) },
).filter(
  (path) =>
    ![
      'docs/internals/words.md',
      'test/project/words.test.ts',
      'test/project/source-style.test.ts',
      'test/project/test-names.ts',
      'docs/internals/past-bugs.md',
    ].includes(path),
);

/** Lines of a text that hold a refused word. */
function refusedIn(path: string, text: string): string[] {
  const words = REFUSED.filter(
    ({ within }) => within === undefined || within.some((folder) => path.startsWith(folder)),
  );
  return text
    .split('\n')
    .flatMap((line, i) =>
      words
        .filter(({ found, except }) => found.test(line) && !(except?.test(line) ?? false))
        .map(({ found, word }) => `${path}:${i + 1}: "${found.exec(line)![0]}": say ${word}`),
    );
}

describe('words of code and documents', () => {
  it('a word that docs/internals/words.md has another word for stands in no file', () => {
    const root = new URL('../../', import.meta.url);
    expect(FILES.length).toBeGreaterThan(1000);
    expect(FILES.flatMap((path) => refusedIn(path, readFileSync(new URL(path, root), 'utf8')))).toEqual([]);
  });

  it.each([
    ['src/load.ts', '/** Gives back the room. */'],
    ['src/load.ts', 'const mostTokens = 5;'],
    ['assembly/gate/room.ts', '  let most: u32 = 0;'],
    ['src/adaptation/learner.ts', '/** Takes a label. */'],
    ['assembly/prefix/match.ts', '  const span = end - start;'],
    ['docs/replicas.md', 'The sister answers.'],
  ])('a refused word in %s is found: %s', (path, line) => {
    expect(refusedIn(path, line)).toHaveLength(1);
  });

  it.each([
    ['src/pool/select.ts', '/** Labels of an endpoint, most of them short. */'],
    ['src/adaptation/shown-adaptation.ts', '  readonly labels: number;'],
    ['src/operations/tracing/otlp.ts', '  const span = spans[0];'],
  ])('a word in %s that is the right one there is allowed: %s', (path, line) => {
    expect(refusedIn(path, line)).toEqual([]);
  });
});
