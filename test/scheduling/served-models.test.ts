import { describe, expect, it } from 'vitest';
import type { ServedModel } from '../../dist/src/contract/endpoint-facts.js';
import { EndpointFactsTable } from '../../dist/src/scheduling/endpoint-facts.js';
import { servedModelFilter } from '../../dist/src/scheduling/filters/served-model-filter.js';
import { modelsResponder } from '../../dist/src/scheduling/responders/models-responder.js';
import { HookPool, idle } from './hook-pool.ts';

const base = (id: string, more: Partial<ServedModel> = {}): ServedModel => ({ id, parent: '', ...more });
const adapter = (id: string, of: string): ServedModel => ({ id, parent: of });

/** A pool whose endpoints have told these lists; undefined = none. */
function poolOf(
  definition: typeof servedModelFilter,
  lists: readonly (readonly ServedModel[] | undefined)[],
  parameters: unknown = {},
) {
  const pool = new HookPool([{ definition, parameters }], idle(lists.length));
  pool.facts.apply(lists.map((models, slot) => ({ id: `default/pod-${slot}`, models, adapters: undefined })));
  return pool;
}

describe('facts of endpoints on a shard', () => {
  it('facts of endpoints on a shard are replaced by what is told next, and gone when nothing is left', () => {
    const facts = new EndpointFactsTable();
    facts.apply([{ id: 'a', models: [base('llama')], adapters: undefined }]);
    expect([...facts.modelsOf('a')!.keys()]).toEqual(['llama']);
    facts.apply([{ id: 'a', models: undefined, adapters: undefined }]);
    expect([facts.modelsOf('a'), facts.adaptersOf('a'), facts.version]).toEqual([undefined, undefined, 2]);
  });
});

describe('served-model-filter over lists', () => {
  const lists = [[base('llama')], [base('llama'), adapter('lora', 'llama')], undefined, [base('other')]];

  it('served-model-filter over lists keeps endpoints that list a base model, and those that have told nothing', () => {
    expect(poolOf(servedModelFilter, lists).picks({ model: 'llama' })).toEqual(['pod-0', 'pod-1', 'pod-2']);
    expect(poolOf(servedModelFilter, lists, { onMissing: 'Fail' }).picks({ model: 'llama' })).toEqual([
      'pod-0',
      'pod-1',
    ]);
  });

  it('served-model-filter over lists keeps only the endpoints that list an adapter', () => {
    expect(poolOf(servedModelFilter, lists).picks({ model: 'lora' })).toEqual(['pod-1']);
  });

  it('served-model-filter over lists refuses a model that no endpoint lists, unless it falls back', () => {
    const complete = lists.filter((list) => list !== undefined);
    expect(poolOf(servedModelFilter, complete).schedule({ model: 'unknown' }).kind).toBe('rejected');
    const lenient = poolOf(servedModelFilter, complete, { fallbackOnEmpty: true });
    expect(lenient.picks({ model: 'unknown' })).toEqual(['pod-0', 'pod-1', 'pod-2']);
  });

  it('served-model-filter over lists leaves a request without a model alone', () => {
    expect(poolOf(servedModelFilter, lists).picks({ model: '' })).toHaveLength(4);
  });
});

describe('models-responder', () => {
  const get = (path: string, method = 'GET') => ({ method, path });
  const bodyOf = (pool: HookPool, path = '/v1/models') => {
    const answer = pool.plugins.respond(get(path));
    return answer?.kind === 'answered' ? JSON.parse(answer.body) : answer;
  };

  it('models-responder answers with the models of all endpoints, once each, in the order of their names', () => {
    const told = base('llama', { object: 'model', created: 7, ownedBy: 'vllm', shutdownDate: '2027-01-01' });
    const pool = poolOf(modelsResponder, [[told], undefined, [base('llama'), adapter('lora', 'llama'), base('abc')]]);
    expect(bodyOf(pool)).toEqual({
      object: 'list',
      data: [
        { id: 'abc' },
        { id: 'llama', object: 'model', created: 7, owned_by: 'vllm', shutdown_date: '2027-01-01' },
        { id: 'lora' },
      ],
    });
    expect(pool.counted).toEqual(['event{models-responder,answered}']);
  });

  it('models-responder follows the lists', () => {
    const pool = poolOf(modelsResponder, [[base('llama')]]);
    expect(bodyOf(pool).data).toHaveLength(1);
    pool.facts.apply([{ id: 'default/pod-0', models: [base('a'), base('b')], adapters: undefined }]);
    expect(bodyOf(pool).data).toEqual([{ id: 'a' }, { id: 'b' }]);
  });

  it('models-responder refuses with 503 while no endpoint has told its list', () => {
    expect(bodyOf(poolOf(modelsResponder, [undefined, undefined]))).toMatchObject({
      kind: 'rejected',
      code: 'ServiceUnavailable',
      message: 'no model data collected yet from any endpoint',
    });
  });

  it('models-responder takes a slash at the end, and no other path or method', () => {
    const pool = poolOf(modelsResponder, [[base('llama')]]);
    expect(bodyOf(pool, '/v1/models/').data).toHaveLength(1);
    expect(pool.plugins.respond(get('/v1/models/llama'))).toBeUndefined();
    expect(pool.plugins.respond(get('/v1/models', 'POST'))).toBeUndefined();
  });

  it('models-responder names at most 4,096 models', () => {
    const lists = Array.from({ length: 17 }, (_, slot) => Array.from({ length: 256 }, (_, i) => base(`${slot}-${i}`)));
    expect(bodyOf(poolOf(modelsResponder, lists)).data).toHaveLength(4_096);
  });

  it('models-responder keeps requests to the endpoints that list their model, and to all where none does', () => {
    const lists = [[base('llama')], [adapter('lora', 'llama')], undefined];
    const pool = poolOf(modelsResponder, lists);
    expect(pool.picks({ model: 'llama' })).toEqual(['pod-0', 'pod-2']);
    expect(pool.picks({ model: 'lora' })).toEqual(['pod-1']);
    expect(pool.picks({ model: 'unknown' })).toEqual(['pod-2']);
    const complete = poolOf(modelsResponder, lists.slice(0, 2));
    expect(complete.picks({ model: 'unknown' })).toEqual(['pod-0', 'pod-1']);
  });
});
