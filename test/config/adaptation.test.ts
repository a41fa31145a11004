import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../dist/src/config/load.js';
import { planReload } from '../../dist/src/config/reload.js';

const options = { allowExperimental: false, registry: builtinPlugins };
const head = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n';
const load = (section: string) => loadConfiguration({ text: head + section }, options);

describe('the section adaptation', () => {
  it('the section adaptation is shadow when it is absent', () => {
    expect(load('').adaptation.mode).toBe('shadow');
  });

  it('the section adaptation drives with one line', () => {
    const { adaptation } = load('adaptation: {mode: auto}\n');
    expect(adaptation).toMatchObject({
      mode: 'auto',
      model: { firstOutputTargetMs: 2000, perTokenTargetMs: 60, missPrice: 1.5, slots: 256 },
      guard: { epochMs: 20_000, budget: 0.05, samples: 250, correlation: 0.3, pauseMs: 300_000 },
      stateFile: undefined,
    });
  });

  it('the section adaptation takes durations and numbers', () => {
    const section =
      'adaptation: {timeToFirstToken: 500ms, timePerOutputToken: 0.02s, runningRequests: 64,\n' +
      '  prior: {baseLatency: 0s, prefillPerThousandTokens: 22ms}, guard: {epoch: 1m, budget: 0.1}}\n';
    expect(load(section).adaptation).toMatchObject({
      model: {
        firstOutputTargetMs: 500,
        perTokenTargetMs: 20,
        slots: 64,
        prior: { baseMs: 0, prefillMsPerKiloToken: 22, stepMs: 13 },
      },
      guard: { epochMs: 60_000, budget: 0.1 },
    });
  });

  it('the section adaptation knows what the requests of an objective want', () => {
    const section = 'adaptation: {objectives: {chat: {timeToFirstToken: 500ms}, batch: {timePerOutputToken: 1s}}}\n';
    expect(load('').adaptation.objectiveTimes.size).toBe(0);
    expect([...load(section).adaptation.objectiveTimes]).toEqual([
      ['chat', { ttftMs: 500, tpotMs: 0 }],
      ['batch', { ttftMs: 0, tpotMs: 1000 }],
    ]);
  });

  it('the section adaptation stands in the effective configuration, which loads to the same', () => {
    const { effective, adaptation } = load('adaptation: {mode: auto, guard: {samples: 9}}\n');
    expect(effective.adaptation).toMatchObject({ mode: 'auto', timeToFirstToken: '2s', guard: { samples: 9 } });
    expect(loadConfiguration({ text: JSON.stringify(effective) }, options).adaptation).toEqual(adaptation);
  });

  it('the former key guard.labels counts as guard.samples, with a warning that names it', () => {
    const { adaptation, effective, warnings } = load('adaptation: {guard: {labels: 9}}\n');
    expect(adaptation.guard.samples).toBe(9);
    expect(effective.adaptation).toMatchObject({ guard: { samples: 9 } });
    expect(effective.adaptation).not.toHaveProperty(['guard', 'labels']);
    expect(warnings).toEqual([expect.stringMatching(/adaptation\.guard\.labels.*deprecated: use .*guard\.samples$/)]);
  });

  it.each([
    ['baseLatency: 2s', 'baseLatency: counts as 500ms, the most that is learned; give 500ms or less'],
    ['perWaitingRequest: 31ms', 'perWaitingRequest: counts as 30ms, the most that is learned; give 30ms or less'],
  ])('the section adaptation warns of a prior beyond what is learned: %s', (prior, message) => {
    expect(load(`adaptation: {prior: {${prior}}}\n`).warnings).toEqual([expect.stringContaining(message)]);
    expect(load('adaptation: {prior: {baseLatency: 500ms, perWaitingRequest: 30ms}}\n').warnings).toEqual([]);
  });

  it('guard.samples counts where both keys are given', () => {
    const { adaptation, warnings } = load('adaptation: {guard: {labels: 9, samples: 7}}\n');
    expect(adaptation.guard.samples).toBe(7);
    expect(warnings).toEqual([expect.stringContaining('ignored because that is set')]);
  });

  it.each([
    ['adaptation: {mode: full}\n', /adaptation\.mode.*"?off"?.*"?auto"?/],
    ['adaptation: {mod: auto}\n', /mod\b.*mode/],
    ['adaptation: {timeToFirstToken: 0s}\n', /adaptation\.timeToFirstToken.*longer than 0/],
    ['adaptation: {timeToFirstToken: fast}\n', /adaptation\.timeToFirstToken.*expected a duration/],
    ['adaptation: {prior: {baseLatency: -1ms}}\n', /adaptation\.prior\.baseLatency.*must not be negative/],
    ['adaptation: {guard: {budget: 0}}\n', /adaptation\.guard\.budget/],
    ['adaptation: {missPrice: 100}\n', /adaptation\.missPrice/],
    ['adaptation: {objectives: {chat: {timeToFirstToken: 0s}}}\n', /adaptation\.objectives\.chat\.timeToFirstToken/],
    ['adaptation: {hardwareLabel: ""}\n', /adaptation\.hardwareLabel/],
  ])('the section adaptation refuses %s', (section, message) => {
    expect(() => load(section)).toThrow(message);
  });

  it('the section adaptation changes without a restart', () => {
    const plan = planReload(load(''), load('adaptation: {mode: auto}\n'), builtinPlugins);
    expect(plan).toEqual({ changed: true, restart: [] });
  });
});
