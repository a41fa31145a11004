import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { SERVE_FLAGS } from '../../dist/src/serve/flag-table.js';
import { parseServeFlags, type ServeFlags } from '../../dist/src/serve/flags.js';
import { ROUTER_FLAGS } from '../../dist/src/serve/router-flags.js';

/** Path of llm-d-router's picker; without it what compares with it is skipped. */
const ROUTER = process.env.LLM_D_ROUTER;

const read = (...argv: string[]) => parseServeFlags(argv, {}) as ServeFlags;

describe('the table of flags of llm-d-router', () => {
  it('every flag of the table can be given', () => {
    expect([...ROUTER_FLAGS.keys()].filter((name) => !(name in SERVE_FLAGS))).toEqual([]);
  });

  it('a flag without effect says why', () => {
    expect(ROUTER_FLAGS.get('enable-pprof')).toEqual({
      since: 'August 2026',
      effect: 'none: the metrics port serves no profiles of Go',
    });
  });

  it('a flag of neither ends the start', () => {
    expect(ROUTER_FLAGS.has('some-later-flag')).toBe(false);
    expect(() => read('--some-later-flag')).toThrow('unknown flag --some-later-flag');
  });

  it.skipIf(ROUTER === undefined)('the table has every flag that llm-d-router prints', () => {
    const { stdout, stderr } = spawnSync(ROUTER!, ['--help'], { encoding: 'utf8' });
    const names = [...`${stdout}${stderr}`.matchAll(/^ +(?:-v, )?--([a-z0-9-]+)/gm)].map(([, name]) => name!);
    expect(names.length).toBeGreaterThan(30);
    expect(names.filter((name) => !ROUTER_FLAGS.has(name))).toEqual([]);
  });
});

describe('flags of the next llm-d-router', () => {
  it('--feature-gates is a comma list that may be given several times', () => {
    expect(read('--feature-gates=flowControl,haPopulateNonLeaderDatastore=false').featureGates).toEqual([
      { name: 'flowControl', on: true },
      { name: 'haPopulateNonLeaderDatastore', on: false },
    ]);
    expect(read('--feature-gates=flowControl', '--feature-gates=flowControl=false').featureGates).toHaveLength(2);
  });

  it.each([
    ['--feature-gates=flowcontrol', '--feature-gates: unknown feature gate "flowcontrol"; did you mean "flowControl"?'],
    [
      '--feature-gates=flowControl=maybe',
      '--feature-gates: feature gate flowControl must be true or false, got "maybe"',
    ],
    ['--fairness-id-metric-label-limit=-1', '--fairness-id-metric-label-limit: expected a number from 0'],
    ['--plugin-state-staleness-threshold=0', '--plugin-state-staleness-threshold: '],
  ])('%s is refused', (argument, message) => {
    expect(() => read(argument)).toThrow(message);
  });

  it.each([
    ['--watch-config-file=true', []],
    ['--watch-config-file=false', [expect.stringContaining('has no effect: the configuration is followed anyway')]],
    ['--plugin-state-staleness-threshold=1h', [expect.stringContaining('is released when its stream ends')]],
  ])('%s is taken', (argument, warnings) => {
    expect(read(argument).warnings).toEqual(warnings);
  });
});
