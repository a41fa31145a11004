import { describe, expect, it } from 'vitest';
import { load, refusal } from './configuration-text.js';

const on = (section: string, plugins = '') => `featureGates: [flowControl]\n${plugins}flowControl: ${section}`;

describe('flowControl.sessions.identity', () => {
  const named = (plugins: string, identity: string) =>
    load(
      `featureGates: [flowControl]\nplugins: ${plugins}\n` +
        `flowControl: {sessions: {mode: shadow, identity: ${identity}}}`,
      true,
    );

  it.each([
    ['[{type: agent-identity}]', 'agent-identity', 'agent-session'],
    ['[{type: session-id-producer, name: mine, parameters: {headerName: x-chat}}]', 'mine', 'mine'],
    ['[{type: agent-identity}]', 'auto', undefined],
  ])('flowControl.sessions.identity beside %s: %s goes by the attribute %s', (plugins, identity, attribute) => {
    const { flowControl, effective } = named(plugins, identity);
    expect(flowControl!.sessions.attribute).toBe(attribute);
    expect(effective).toMatchObject({ flowControl: { sessions: { identity } } });
  });

  it.each([
    ['{engine: sglang}', { engine: 'sglang', priority: 1 }],
    ['{engine: dynamo, priority: 9}', { engine: 'dynamo', priority: 9 }],
  ])('flowControl.sessions.retention %s is %j', (given, retention) => {
    const text = `featureGates: [flowControl]\nflowControl: {sessions: {mode: shadow, retention: ${given}}}`;
    expect(load(text).flowControl!.sessions).toMatchObject({ retention });
  });

  it('flowControl.sessions.idleLease that is negative is refused by name', () => {
    const text = 'featureGates: [flowControl]\nflowControl: {sessions: {mode: shadow, idleLease: -1s}}';
    expect(() => load(text)).toThrow(/flowControl\.sessions\.idleLease: must not be negative, .*0s = none is kept/);
  });

  it('flowControl.sessions.identity that names no such plugin is refused with those that can', () => {
    expect(() => named('[{type: queue-scorer}]', 'queue-scorer')).toThrow(
      /flowControl\.sessions\.identity: no plugin "queue-scorer" names sessions: .*add a session-id-producer or an agent/,
    );
    expect(() => named('[{type: agent-identity}]', 'agent')).toThrow(/by prompts, else "agent-identity"/);
  });
});

describe('flow control that is off', () => {
  it('flow control that is off ignores its section with a warning', () => {
    expect(load('flowControl: {maxBytes: "1024"}').warnings).toEqual([
      '--config-text:3:14: flowControl: the flowControl feature gate is disabled: the section is ignored, except ' +
        'its saturationDetector',
    ]);
  });

  it.each([
    ['flowControl: {saturationDetector: {pluginRef: utilization-detector}}', []],
    [
      'saturationDetector: {pluginRef: utilization-detector}',
      ['--config-text:3:21: saturationDetector: is deprecated: use flowControl.saturationDetector'],
    ],
  ])('flow control that is off does not warn about the gate when only a detector is set: %s', (body, warnings) => {
    expect(load(body).warnings).toEqual(warnings);
  });
});

describe('flow control that is off, among several pickers', () => {
  it('flow control that is off, among several pickers says that their number does nothing', () => {
    expect(load('flowControl: {replicas: 2}').warnings).toEqual([expect.stringContaining('the section is ignored')]);
  });

  it('flow control that is off, among several pickers says that sessions are not counted', () => {
    const { warnings } = load('flowControl: {sessions: {mode: shadow}}');
    expect(warnings).toEqual([expect.stringContaining('the section is ignored')]);
  });
});

describe('flow control that is on', () => {
  it('flow control that is on ends running requests only when it is told to', () => {
    expect(load(on('{enableEviction: true}'))).toMatchObject({ warnings: [], flowControl: { enableEviction: true } });
    expect(load(on('{}')).flowControl).toMatchObject({ enableEviction: false });
  });

  it.each(['{}', '{sessions: {}}', '{sessions: {stretch: 0.06}}'])(
    'flow control that is on counts sessions, and holds none, unless it is told otherwise: %s',
    (given) => {
      const { flowControl, effective, warnings } = load(on(given));
      expect(flowControl).toMatchObject({ sessions: { mode: 'shadow', smallPrompt: 0.02 } });
      expect(effective.flowControl).toMatchObject({ sessions: { mode: 'shadow' } });
      expect(warnings).toEqual([]);
    },
  );

  it('flow control that is on counts sessions as it is told to', () => {
    expect(load(on('{sessions: {mode: off}}')).flowControl).toMatchObject({ sessions: { mode: 'off' } });
    const { warnings, flowControl, effective } = load(on('{sessions: {mode: shadow, smallPrompt: 0.05}}'));
    expect(warnings).toEqual([]);
    expect(flowControl).toMatchObject({ sessions: { mode: 'shadow', smallPrompt: 0.05 } });
    expect(effective.flowControl).toMatchObject({ sessions: { mode: 'shadow', smallPrompt: 0.05 } });
  });

  it('flow control that is on keeps its own fairness when only sessions are set', () => {
    const { flowControl } = load(on('{sessions: {mode: shadow}}'));
    expect(flowControl).toMatchObject({ fallback: load('featureGates: [flowControl]').flowControl!.fallback });
    expect(flowControl!.template).toEqual(load('featureGates: [flowControl]').flowControl!.template);
  });

  it('flow control that is on refuses a mode of sessions that it does not have, with those that it has', () => {
    expect(() => load(on('{sessions: {mode: always}}'))).toThrow(/flowControl\.sessions\.mode.*off.*shadow.*on/s);
  });

  it('flow control that is on holds turns of sessions as long and as far as it is told to', () => {
    const given = '{defaultRequestTTL: 400s, sessions: {mode: on, maxWait: 90s, stretch: 0.05}}';
    const { warnings, flowControl } = load(on(given));
    expect(warnings).toEqual([]);
    expect(flowControl!.sessions).toEqual({ mode: 'on', smallPrompt: 0.02, stretch: 0.05, maxWaitMs: 90_000 });
    const endless = load(on('{defaultRequestTTL: 0s, sessions: {mode: on, maxWait: 0s}}'));
    expect(endless.flowControl!.sessions.maxWaitMs).toBe(Number.POSITIVE_INFINITY);
    expect(endless.warnings).toEqual([]);
  });

  it('flow control that is on warns of held turns that are refused before their longest wait', () => {
    const warned = [expect.stringMatching(/flowControl\.sessions.*defaultRequestTTL, 60s, before maxWait, 300s/s)];
    expect(load(on('{sessions: {mode: on}}')).warnings).toEqual(warned);
    expect(load(on('{sessions: {mode: shadow}}')).warnings).toEqual([]);
    expect(load(on('{sessions: {mode: on, maxWait: 45s}}')).warnings).toEqual([]);
    const unbounded = [
      expect.stringMatching(/defaultRequestTTL, 60s, as maxWait, 0s, does not end its hold: set a max/),
    ];
    expect(load(on('{sessions: {mode: on, maxWait: 0s}}')).warnings).toEqual(unbounded);
  });

  it('flow control that is on refuses a negative longest wait of held turns', () => {
    const given = on('{sessions: {mode: on, maxWait: -1s}}');
    expect(() => load(given)).toThrow(/flowControl\.sessions\.maxWait.*must not be negative/s);
  });

  it('flow control that is on needs no section', () => {
    expect(load('featureGates: [flowControl]').effective.flowControl).toMatchObject({
      defaultRequestTTL: '60s',
      noEndpointRequestTTL: '60s',
    });
  });

  it('flow control that is on fills in bands, where 0 means the default', () => {
    const { flowControl } = load(on('{priorityBands: [{priority: 1, maxBytes: 500Mi, maxRequests: "0"}]}')).effective;
    expect(flowControl).toMatchObject({
      priorityBands: [
        {
          priority: 1,
          maxBytes: '500Mi',
          maxRequests: 5000,
          fairnessPolicyRef: 'global-strict-fairness-policy',
          orderingPolicyRef: 'fcfs-ordering-policy',
        },
      ],
    });
  });

  it('flow control that is on takes a longest wait for each band, where 0 means no end', () => {
    const bands = '{priority: 10, defaultRequestTTL: 5s}, {priority: -1, defaultRequestTTL: 0s}, {priority: 1}';
    const { flowControl } = load(
      on(`{defaultRequestTTL: 30s, defaultPriorityBand: {defaultRequestTTL: 9s}, priorityBands: [${bands}]}`),
    );
    expect(flowControl?.bands.map(({ priority, ttlMs }) => [priority, ttlMs])).toEqual([
      [10, 5_000],
      [-1, Infinity],
      [1, undefined],
    ]);
    expect([flowControl?.ttlMs, flowControl?.template?.ttlMs]).toEqual([30_000, 9_000]);
  });

  it('flow control that is on warns of a maxExpectedWait beyond the longest wait of every band only', () => {
    const warned = (bands: string) =>
      load(on(`{maxExpectedWait: 90s, priorityBands: [${bands}]}`)).warnings.filter((text) =>
        text.includes('maxExpected'),
      );
    expect(warned('{priority: 1, defaultRequestTTL: 5s}')).toHaveLength(1);
    expect(warned('{priority: 1, defaultRequestTTL: 2m}')).toEqual([]);
    expect(warned('{priority: 1, defaultRequestTTL: 0s}')).toEqual([]);
  });

  it.each([
    '{maxBytes: 1Gi, maxRequests: 1k, defaultRequestTTL: 1m, noEndpointRequestTTL: 5m}',
    '{defaultRequestTTL: 0s}',
    '{defaultPriorityBand: {maxRequests: "10"}, defaultNegativePriorityBand: {maxRequests: 5}}',
  ])('flow control that is on accepts %s', (section) => {
    expect(load(on(section)).gates.get('flowControl')).toBe(true);
  });

  it('flow control that is on takes policies by their configured names', () => {
    const plugins =
      'plugins: [{type: fcfs-ordering-policy, name: order}, {type: global-strict-fairness-policy, name: fair}]\n';
    const section = '{priorityBands: [{priority: 100, orderingPolicyRef: order, fairnessPolicyRef: fair}]}';
    expect(load(on(section, plugins)).effective.flowControl).toMatchObject({
      priorityBands: [{ orderingPolicyRef: 'order', fairnessPolicyRef: 'fair' }],
    });
  });

  it.each([
    ['{maxBytes: "-1"}', 'flowControl.maxBytes: global MaxBytes must be non-negative, got "-1"'],
    ['{maxRequests: -1}', 'global MaxRequests must be non-negative'],
    ['{priorityBands: [{priority: 1, maxBytes: "-1"}]}', 'priority band 1 MaxBytes must be non-negative'],
    ['{priorityBands: [{priority: 1, maxRequests: "-1"}]}', 'priority band 1 MaxRequests must be non-negative'],
    ['{defaultPriorityBand: {maxBytes: "-1"}}', 'default priority band MaxBytes must be non-negative'],
    ['{defaultNegativePriorityBand: {maxBytes: "-1"}}', 'default negative priority band MaxBytes must be non-negative'],
    ['{defaultRequestTTL: -1s}', 'DefaultRequestTTL cannot be negative'],
    [
      '{priorityBands: [{priority: 1, defaultRequestTTL: -1s}]}',
      'priority band 1 DefaultRequestTTL cannot be negative',
    ],
    ['{defaultPriorityBand: {defaultRequestTTL: -1s}}', 'default priority band DefaultRequestTTL cannot be negative'],
    ['{noEndpointRequestTTL: -1s}', 'NoEndpointRequestTTL cannot be negative'],
    ['{priorityBands: [{priority: 1}, {priority: 1}]}', 'flowControl.priorityBands[1].priority: duplicate priority 1'],
    [
      '{priorityBands: [{orderingPolicyRef: nope}]}',
      'priorityBands[0].orderingPolicyRef: plugin "nope" is not defined',
    ],
    ['{priorityBands: [{fairnessPolicyRef: nope}]}', 'plugin "nope" is not defined'],
    ['{priorityBands: [{orderingPolicyRef: static-usage-limit-policy}]}', 'expected ordering-policy'],
    ['{usageLimitPolicyPluginRef: nope}', 'flowControl.usageLimitPolicyPluginRef: plugin "nope" is not defined'],
  ])('flow control that is on refuses %s', (section, message) => {
    expect(refusal(on(section))).toContain(message);
  });
});

describe('the saturation detector', () => {
  it('the saturation detector is the utilization detector by default', () => {
    expect(load('').saturationDetector).toEqual({
      type: 'utilization-detector',
      queueDepthThreshold: 5,
      kvCacheUtilThreshold: 0.8,
      metricsStalenessMs: 200,
      headroom: 0,
    });
  });

  it('the saturation detector may be the concurrency detector, which brings its producer', () => {
    const body =
      'plugins: [{type: concurrency-detector, parameters: {concurrencyMode: hybrid, maxConcurrency: 10}}]\n' +
      'flowControl: {saturationDetector: {pluginRef: concurrency-detector}}';
    const { saturationDetector, effective } = load(body);
    expect(saturationDetector).toEqual({
      type: 'concurrency-detector',
      mode: 'hybrid',
      maxConcurrency: 10,
      maxTokenConcurrency: 1_000_000,
      headroom: 0,
      failOpen: false,
    });
    expect(effective.plugins.map(({ name }) => name)).toContain('inflight-load-producer');
  });

  it.each([
    ['flowControl: {saturationDetector: {pluginRef: no-detector}}', 'plugin "no-detector" is not defined'],
    ['saturationDetector: {pluginRef: no-detector}', 'saturationDetector.pluginRef: plugin "no-detector"'],
    [
      'plugins: [{type: queue-scorer}]\nflowControl: {saturationDetector: {pluginRef: queue-scorer}}',
      'plugin "queue-scorer" is of kind scorer, expected saturation-detector',
    ],
  ])('the saturation detector is refused: %j', (body, message) => {
    expect(refusal(body)).toContain(message);
  });
});
