import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { LONG_TESTS } from '../../vitest.config.ts';
import { actionlint, actionlintSkipReason } from './actionlint.ts';
import { pathOf, WORKFLOWS, workflow } from './workflows.ts';

describe.skipIf(actionlintSkipReason !== '')(`actionlint${actionlintSkipReason}`, () => {
  it.each(WORKFLOWS)('actionlint finds nothing in %s', async (name) => {
    expect(await actionlint(pathOf(name))).toBe('');
  });

  it('actionlint finds a job that needs one that is not there', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'workflow-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'wrong.yml');
    await writeFile(file, 'on: push\njobs:\n  one:\n    needs: two\n    runs-on: ubuntu-24.04\n    steps: [run: ls]\n');
    expect(await actionlint(file)).toMatch(/two/);
  });
});

describe.each(WORKFLOWS)('the workflow %s', (name) => {
  const { permissions, jobs } = workflow(name);

  it('the workflow may read the repository and nothing else, where a job does not say more', () => {
    expect(permissions).toEqual({ contents: 'read' });
  });

  it('the workflow uses only actions of GitHub itself and workflows of this repository', () => {
    const used = Object.values(jobs).flatMap(({ uses, steps = [] }) => [uses, ...steps.map((step) => step.uses)]);
    expect(used.filter((one) => one !== undefined && !/^(actions\/[\w-]+@v\d+|\.\/\.github\/.*)$/.test(one))).toEqual(
      [],
    );
  });
});

describe('the workflow of long tests', () => {
  const scripts: Readonly<Record<string, string>> = manifest.scripts;

  it('the workflow of long tests runs each test that is left out otherwise, and lets none be skipped', () => {
    for (const file of LONG_TESTS) expect(scripts['test:stress']).toContain(` ${file}`);
    const steps = Object.values(workflow('stress.yml').jobs).flatMap(({ steps = [] }) => steps);
    const running = steps.find(({ run }) => run === 'npm run test:stress');
    expect(running?.env).toEqual({ POINTSMAN_REQUIRE_ENVOY: 1, POINTSMAN_REQUIRE_KUBERNETES: 1 });
  });
});

describe('the workflow of a release', () => {
  const { jobs } = workflow('release.yml');

  it('what is published waits for all checks and for what was packed', () => {
    const writing = Object.entries(jobs).filter(([, job]) => Object.values(job.permissions ?? {}).includes('write'));
    expect(writing.map(([name]) => name)).toEqual(['image', 'publish']);
    for (const [, { needs }] of writing) expect(needs).toEqual(expect.arrayContaining(['checks', 'pack']));
  });

  it('no expression stands in a script, where its value would be code', () => {
    const scripts = Object.values(jobs).flatMap(({ steps = [] }) => steps.map(({ run = '' }) => run));
    expect(scripts.filter((script) => script.includes('${{'))).toEqual([]);
  });
});
