import { describe, expect, it } from 'vitest';
import type { RenderSettings } from '../../dist/src/contract/token-settings.js';
import { tokenProducer } from '../../dist/src/scheduling/producers/token-producer.js';

const settings = (parameters: object) => tokenProducer.tokenSettings!(tokenProducer.parameters.parse(parameters));
const problem = (parameters: object) => tokenProducer.parameters.safeParse(parameters).error?.issues[0]?.message;

describe('token-producer', () => {
  it('token-producer estimates when it is told nothing, or to', () => {
    expect(settings({})).toBeUndefined();
    expect(settings({ estimate: {} })).toBeUndefined();
    expect(settings({ estimate: {}, modelName: 'm' })).toBeUndefined();
  });

  it('token-producer asks the default server when a model is named', () => {
    const expected: RenderSettings = {
      kind: 'render',
      url: 'http://localhost:8000',
      modelName: 'm',
      timeoutMs: 5_000,
      partsTimeoutMs: 30_000,
    };
    expect(settings({ modelName: 'm' })).toEqual(expected);
    expect(settings({ modelName: 'm', vllm: {} })).toEqual(expected);
  });

  it('token-producer takes URL and deadlines; a deadline that is not above zero means the default', () => {
    expect(settings({ modelName: 'm', vllm: { url: 'https://r:1/x/', timeout: '1s', mmTimeout: '0s' } })).toEqual({
      kind: 'render',
      url: 'https://r:1/x',
      modelName: 'm',
      timeoutMs: 1_000,
      partsTimeoutMs: 30_000,
    });
    expect(settings({ modelName: 'm', vllm: { timeout: '-5s' } })).toMatchObject({ timeoutMs: 5_000 });
  });

  it('token-producer lets the endpoints of the pool render', () => {
    expect(settings({ modelName: 'm', vllm: { servingEndpoints: true } })).toMatchObject({ url: undefined });
  });

  it('token-producer reads the tokeniser files of a folder', () => {
    expect(settings({ local: { path: '/models/m/' } })).toEqual({
      kind: 'local',
      folder: '/models/m',
      timeoutMs: 1_000,
      threads: 1,
    });
    expect(settings({ local: { path: 'm', timeout: '2s', threads: 4 }, modelName: 'm' })).toMatchObject({
      folder: `${process.cwd()}/m`,
      timeoutMs: 2_000,
      threads: 4,
    });
  });

  it.each<[object, string]>([
    [{ local: { path: '' } }, 'the folder that holds tokenizer.json'],
    [{ local: { path: 'm' }, estimate: {} }, 'only one of'],
    [{ vllm: {} }, 'vllm needs modelName'],
    [{ vllm: {}, modelName: '' }, 'vllm needs modelName'],
    [{ modelName: 'm', vllm: {}, estimate: {} }, 'only one of'],
    [{ modelName: 'm', vllm: { timeout: 'soon' } }, 'duration'],
    [{ modelName: 'm', vllm: { url: 'nonsense' } }, 'base URL'],
    [{ estimate: { image: { mode: 'guess' } } }, 'Invalid option'],
  ])('token-producer refuses %j', (parameters, message) => {
    expect(problem(parameters)).toContain(message);
  });

  it('token-producer says what it takes but does not do', () => {
    const advice = (parameters: object) => tokenProducer.advise!(tokenProducer.parameters.parse(parameters));
    expect(advice({})).toEqual([]);
    expect(advice({ udsTokenizerConfig: { socketFile: '/x' } })).toEqual([expect.stringContaining('deprecated')]);
    expect(advice({ estimate: { image: { mode: 'static', static: { staticToken: 5 } } } })).toEqual([
      expect.stringContaining('no effect'),
    ]);
  });
});
