import { describe, expect, it } from 'vitest';
import { configurations, recordedStarts } from './router-configurations.ts';
import { llmdRouter, POINTSMAN, startOf } from './router-start.ts';

/** Paths of llm-d-router's picker and of its configurations; what needs them is skipped without. */
const { LLM_D_ROUTER: router, LLM_D_ROUTER_CONFIGS: folder } = process.env;

const recorded = recordedStarts();

/** Configurations that llm-d-router starts on and this picker refuses: the address of a server is a placeholder. */
const REFUSED_HERE: readonly string[] = ['llm-d-router/005_deploy_config_epp_burst_prefix_cache_config_yaml.yaml'];

describe('the recorded starts on configurations of llm-d-router', () => {
  it('the record has every kept configuration', () => {
    expect(Object.keys(recorded)).toEqual(expect.arrayContaining(configurations(undefined).map(({ name }) => name)));
  });

  it('no configuration that llm-d-router starts on is refused', () => {
    const refused = Object.entries(recorded)
      .filter(([, start]) => start.pointsman === 'refuses' && start['llm-d-router'] !== 'refuses')
      .map(([name]) => name);
    expect(refused).toEqual(REFUSED_HERE);
  });
});

describe('the start on a configuration of llm-d-router', () => {
  it.each(configurations(folder))('$name is as recorded', { timeout: 60_000 }, async ({ name, text }) => {
    const { outcome, words } = await startOf(POINTSMAN, text);
    expect({ outcome, words }).toMatchObject({ outcome: recorded[name]?.pointsman });
  });
});

describe.skipIf(router === undefined)('the start of llm-d-router itself', () => {
  it.each(configurations(folder))('$name is as recorded', { timeout: 60_000 }, async ({ name, text }) => {
    const { outcome, words } = await startOf(llmdRouter(router!), text);
    expect({ outcome, words }).toMatchObject({ outcome: recorded[name]?.['llm-d-router'] });
  });
});
