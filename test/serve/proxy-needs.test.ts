import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { HealthReport } from '../../dist/src/operations/health-report.js';
import { type ServeProcess, Setting, startServe } from '../picker/serving.ts';
import { pointsman } from './program.ts';

const OFF = 'adaptation: {mode: off}\n';

/** Configurations that count prompt tokens until their first output, each in a way of its own. */
const COUNTING = [
  {
    what: 'a filter on active-tokens',
    who: 'endpoint-attribute-filter',
    profile:
      'plugins:\n- type: endpoint-attribute-filter\n  parameters:\n    attribute: active-tokens\n' +
      `    algorithm: {type: threshold, threshold: {operator: LessThan, value: 100000}}\n${OFF}`,
  },
  {
    what: 'a saturation detector by tokens',
    who: 'concurrency-detector',
    profile:
      'plugins:\n- {type: concurrency-detector, parameters: {concurrencyMode: tokens}}\n- type: queue-scorer\n' +
      'saturationDetector: {pluginRef: concurrency-detector}\n' +
      `schedulingProfiles:\n- {name: default, plugins: [{pluginRef: queue-scorer}]}\n${OFF}`,
  },
  {
    what: 'learned costs that learn no more',
    who: 'marginal-cost-scorer',
    profile: `plugins:\n- type: marginal-cost-scorer\n${OFF}`,
  },
] as const;

describe.each(COUNTING)('the needs of $what', ({ who, profile }) => {
  let setting: Setting;
  let serving: ServeProcess;

  beforeAll(async () => {
    setting = await Setting.create([{ name: 'a', port: 9 }], profile);
    serving = await startServe([...setting.flags, '--allow-experimental-plugins', '--shards=1']);
  }, 60_000);
  afterAll(async () => {
    await serving.kill();
    await setting.remove();
  });

  it('the needs are the body of the request and the first token for lint', () => {
    const { stdout } = pointsman('lint', setting.configFile, '--allow-experimental-plugins');
    expect(stdout).toMatch(new RegExp(`reads of a request +its body: .*${who} reads its length or its model`));
    expect(stdout).toMatch(
      new RegExp(`reads of an answer +first token: ${who} counts prompts until their first token`),
    );
  });

  it('the needs are the same for the log', () => {
    const line = serving
      .log()
      .split('\n')
      .find((text) => text.includes('what decisions read of the proxy'));
    expect(JSON.parse(line!)).toMatchObject({
      request: expect.stringContaining(`its body: `),
      answer: `first token: ${who} counts prompts until their first token`,
    });
  });

  it('the needs are bodies of answers for doctor, which does not advise to leave them out', async () => {
    const page = await fetch(`http://127.0.0.1:${serving.metricsPort}/debug/health`);
    expect((await page.json()) as HealthReport).toMatchObject({ readsAnswers: true });
  });
});
