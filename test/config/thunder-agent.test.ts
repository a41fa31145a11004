import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { findings } from '../../dist/src/config/findings.js';
import { load } from './configuration-text.js';

const loaded = (body: string) => load(body, true);

/** Queues of any length of wait, with thunder-agent among the plugins. */
const named = (parameters = '{}', sections = 'flowControl: {defaultRequestTTL: 0s}') =>
  loaded(`featureGates: [flowControl]\nplugins: [{type: thunder-agent, parameters: ${parameters}}]\n${sections}`);

const EVERY_SLOT = `featureGates: [flowControl]
plugins:
- type: agent-identity
  parameters: {additionalSessionHeaders: [x-agent-session]}
- type: queue-scorer
- type: thunder-agent
  parameters: {headWaitStarvationMs: 1800000}
- type: edf-ordering-policy
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: queue-scorer}
  - {pluginRef: thunder-agent, weight: 10}
flowControl:
  defaultRequestTTL: 3600s
  saturationDetector: {pluginRef: thunder-agent}
  priorityBands:
  - {priority: 0, fairnessPolicyRef: thunder-agent, orderingPolicyRef: edf-ordering-policy}
  - {priority: 1, fairnessPolicyRef: thunder-agent, orderingPolicyRef: thunder-agent}
`;

describe('thunder-agent in all its slots', () => {
  it('thunder-agent in all its slots turns session admission on with its longest wait', () => {
    const { flowControl, effective } = loaded(EVERY_SLOT);
    expect(flowControl!.sessions).toMatchObject({ mode: 'on', smallPrompt: 0.02, stretch: 0.06, maxWaitMs: 1_800_000 });
    expect(effective.flowControl).toMatchObject({
      sessions: { mode: 'on', maxWait: '1800s' },
      saturationDetector: { pluginRef: 'thunder-agent' },
    });
  });

  it('thunder-agent in all its slots leaves room to the learned limits, and bands their default policies', () => {
    const { flowControl, saturationDetector } = loaded(EVERY_SLOT);
    expect(saturationDetector).toBeUndefined();
    expect(flowControl!.bands.map(({ fairness, ordering }) => [fairness.kind, ordering.kind])).toEqual([
      ['global-strict', 'deadline'],
      ['global-strict', 'arrival'],
    ]);
  });

  it('thunder-agent in all its slots scores homes of sessions, and has prompts matched, which recognises them', () => {
    const { scheduling } = loaded(EVERY_SLOT);
    expect(scheduling.profiles[0]!.operations.map(({ code, weight }) => [code, weight])).toEqual([
      ['OP_SCORE_QUEUE', 1],
      ['OP_SCORE_SESSION_HOME', 10],
      ['OP_PICK_MAX_SCORE', 1],
    ]);
    expect(scheduling.prefix).toBeDefined();
  });

  it('thunder-agent in all its slots tells sessions apart by agent-identity, without further words', () => {
    const { flowControl, effective, warnings } = loaded(EVERY_SLOT);
    expect(flowControl!.sessions.attribute).toBe('agent-session');
    expect(effective).toMatchObject({ flowControl: { sessions: { identity: 'agent-identity' } } });
    expect(warnings).toEqual([]);
  });

  it('thunder-agent in all its slots loads again from its effective configuration without further words', () => {
    const { effective, flowControl, warnings } = loaded(EVERY_SLOT);
    const { apiVersion: _version, kind: _kind, ...sections } = effective;
    const again = loaded(
      Object.entries(sections)
        .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
        .join('\n'),
    );
    expect(again.flowControl).toEqual(flowControl);
    expect(again.warnings).toHaveLength(warnings.length);
  });
});

describe('thunder-agent that is only named', () => {
  it('thunder-agent that is only named turns session admission on, with the bound that sessions have by default', () => {
    const { flowControl, warnings } = named();
    expect(flowControl!.sessions).toEqual({ mode: 'on', smallPrompt: 0.02, stretch: 0.06, maxWaitMs: 300_000 });
    expect(warnings).toEqual([]);
    expect(load('featureGates: [flowControl]').flowControl!.sessions.mode).toBe('shadow');
  });

  it('thunder-agent that is only named has an effect for lint, beside a profile without it', () => {
    const text =
      'apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\nfeatureGates: [flowControl]\n' +
      'plugins: [{type: queue-scorer}, {type: thunder-agent}]\nflowControl: {defaultRequestTTL: 0s}\n' +
      'schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]\n';
    const options = { allowExperimental: true, registry: builtinPlugins, engines: [] };
    const { errors, warnings, notes } = findings({ text }, options);
    expect(errors).toEqual([]);
    expect(warnings.filter((line) => line.includes('thunder-agent'))).toEqual([]);
    expect(notes).toEqual([]);
  });

  it('thunder-agent that is only named needs the feature gate, and a warning says so', () => {
    const { flowControl, warnings } = loaded('plugins: [{type: thunder-agent}]');
    expect(flowControl).toBeUndefined();
    expect(warnings).toEqual([
      expect.stringContaining('turns session admission on only with flow control: add flowControl to featureGates'),
    ]);
  });

  it('thunder-agent that is only named twice counts once', () => {
    const { flowControl, warnings } = loaded(`featureGates: [flowControl]
plugins:
- {type: thunder-agent, name: first, parameters: {headWaitStarvationMs: 5000}}
- {type: thunder-agent, name: second, parameters: {headWaitStarvationMs: 7000}}`);
    expect(flowControl!.sessions.maxWaitMs).toBe(5000);
    expect(warnings).toEqual([expect.stringContaining('"second" is a second plugin for sessions: those of "first"')]);
  });
});

describe('thunder-agent beside other settings', () => {
  it('thunder-agent beside other settings of sessions has no say, and a warning tells both', () => {
    const sections = 'flowControl: {defaultRequestTTL: 0s, sessions: {mode: shadow, maxWait: 90s}}';
    const { flowControl, warnings } = named('{headWaitStarvationMs: 1500}', sections);
    expect(flowControl!.sessions).toMatchObject({ mode: 'shadow', maxWaitMs: 90_000 });
    expect(warnings).toEqual([
      expect.stringMatching(/flowControl\.sessions: counts, not what "thunder-agent" .*\(mode on, maxWait 1500ms\)/),
    ]);
  });

  it('thunder-agent beside settings that say the same is not warned about', () => {
    const sections = 'flowControl: {defaultRequestTTL: 0s, sessions: {mode: on, maxWait: 90s, stretch: 0.05}}';
    expect(named('{}', sections).warnings).toEqual([]);
    expect(named('{headWaitStarvationMs: 90000}', sections)).toMatchObject({
      warnings: [],
      flowControl: { sessions: { stretch: 0.05, maxWaitMs: 90_000 } },
    });
  });

  it('thunder-agent beside other settings is warned about a time to live that is over before its longest wait', () => {
    expect(named('{headWaitStarvationMs: 90000}', '').warnings).toEqual([
      expect.stringMatching(/flowControl\.sessions: .*defaultRequestTTL, 60s, before maxWait, 90s/),
    ]);
  });

  it('thunder-agent beside other detectors takes no part in the fullest of them', () => {
    const composite = (detectors: string) =>
      loaded(`featureGates: [flowControl]
plugins:
- {type: thunder-agent, parameters: {headWaitStarvationMs: 1000}}
- {type: utilization-detector}
- {type: max-saturation-detector, parameters: {detectors: ${detectors}}}
flowControl: {saturationDetector: {pluginRef: max-saturation-detector}}`).saturationDetector;
    expect(composite('[thunder-agent, utilization-detector]')).toMatchObject({
      detectors: [{ name: 'utilization-detector' }],
    });
    expect(composite('[thunder-agent]')).toBeUndefined();
  });

  it('thunder-agent as a scorer without flow control scores nothing, and lint says so', () => {
    const text = `apiVersion: llm-d.ai/v1\nkind: EndpointPickerConfig\n${EVERY_SLOT}`;
    const options = { allowExperimental: true, registry: builtinPlugins, engines: [] };
    expect(findings({ text }, options).notes).toEqual([]);
    const off = text.replace('featureGates: [flowControl]\n', '');
    expect(findings({ text: off }, options).notes).toEqual([
      expect.stringContaining(
        '"thunder-agent" scores nothing: sessions are not counted; add flowControl to featureGates',
      ),
    ]);
  });
});

describe('parameters of thunder-agent', () => {
  it.each([
    ['0', Number.POSITIVE_INFINITY],
    ['1500', 1500],
    ['0.25', 1],
    ['1800000', 1_800_000],
  ])('headWaitStarvationMs %s is the longest wait, %d ms', (given, expected) => {
    const { flowControl, warnings } = named(`{headWaitStarvationMs: ${given}}`);
    expect(flowControl!.sessions.maxWaitMs).toBe(expected);
    expect(warnings).toEqual([]);
  });

  it.each([
    ['capacityTokens: 4194304', { capacityTokens: 4_194_304 }],
    ['utilThreshold: 0.9', { usableCache: 0.9 }],
    ['idleLeaseSeconds: 30', { idleLeaseMs: 30_000 }],
    ['idleLeaseSeconds: 0', { idleLeaseMs: 0 }],
    ['evictionTtlSeconds: 0.5', { forgetAfterMs: 500 }],
  ])('%s is a setting of sessions, %j', (parameter, settings) => {
    const { flowControl } = named(`{${parameter}}`);
    expect(flowControl!.sessions).toMatchObject({ mode: 'on', ...settings });
  });

  it.each([
    ['evictionSweepSeconds: 0.5', ['evictionSweepSeconds has no effect: idle sessions are looked at twice a second']],
    ['idleLeaseSeconds: 30', ['idleLeaseSeconds takes the place of what is learned: without it an idle session']],
    ['utilThreshold: 0.9', []],
  ])('%s loads, and what is to be said of it is: %j', (parameter, said) => {
    expect(named(`{${parameter}}`).warnings).toEqual(said.map((text) => expect.stringContaining(text)));
  });

  it('parameters of thunder-agent that flowControl.sessions says otherwise have no say, and a warning tells them', () => {
    const sections = 'flowControl: {defaultRequestTTL: 0s, sessions: {mode: on, idleLease: 10s, usableCache: 0.9}}';
    const { flowControl, warnings } = named('{idleLeaseSeconds: 30, utilThreshold: 0.9}', sections);
    expect(flowControl!.sessions).toMatchObject({ idleLeaseMs: 10_000, usableCache: 0.9 });
    expect(warnings).toContainEqual(expect.stringMatching(/counts, not what .*idleLease 30s, usableCache 0\.9/));
    expect(named('{idleLeaseSeconds: 10, utilThreshold: 0.9}', sections).warnings).toHaveLength(1);
  });

  it.each([
    ['headWaitStarvationMs', '-1'],
    ['headWaitStarvationMs', '30s'],
    ['headWaitStarvationMs', '1e13'],
    ['capacityTokens', '0'],
    ['capacityTokens', '1.5'],
    ['utilThreshold', '0'],
    ['utilThreshold', '1.5'],
    ['idleLeaseSeconds', '-1'],
    ['evictionTtlSeconds', '0'],
    ['evictionSweepSeconds', '0'],
  ])('%s: %s is refused by name', (field, value) => {
    expect(() => named(`{${field}: ${value}}`)).toThrow(new RegExp(`plugins\\[0\\]\\.parameters\\.${field}: `));
  });
});
