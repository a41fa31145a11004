import { describe, expect, it } from 'vitest';
import { ModelsReader, SERVED_MODELS_MAX } from '../../dist/src/pool/sources/models-reader.js';
import { endpointOf } from './endpoints.js';

const endpoint = endpointOf('a', '127.0.0.1', 1);

function read(body: unknown, reader = new ModelsReader(() => {})) {
  const page = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return { reader, ...reader.read(reader.prepare(endpoint), page) };
}

describe('the list of models of an endpoint', () => {
  it('the list of models of an endpoint holds models and adapters with their base model', () => {
    const { reader, empty } = read({
      object: 'list',
      data: [
        { id: 'llama', object: 'model', parent: null },
        { id: 'lora', parent: 'llama' },
      ],
    });
    expect(reader.models.get('default/a')).toEqual([
      { id: 'llama', parent: '', object: 'model' },
      { id: 'lora', parent: 'llama' },
    ]);
    expect(empty).toBe(false);
  });

  it('the list of models of an endpoint shows the models with a parent as adapters, and no others', () => {
    const shown: string[] = [];
    const data = [{ id: 'llama', parent: null }, { id: 'lora', parent: 'llama' }, { id: 'other' }];
    read({ data }, new ModelsReader((name) => shown.push(name)));
    expect(shown).toEqual(['lora']);
  });

  it('the list of models of an endpoint keeps what an answer to it passes on, but for fields of another type', () => {
    const told: [string, unknown][] = [];
    const reader = new ModelsReader(
      () => {},
      (id, models) => told.push([id, models]),
    );
    const model = { id: 'llama', created: 7, owned_by: 'vllm', shutdown_date: 3 };
    read({ data: [model] }, reader);
    reader.forget('default/a');
    expect(told).toEqual([
      ['default/a', [{ id: 'llama', parent: '', created: 7, ownedBy: 'vllm' }]],
      ['default/a', undefined],
    ]);
  });

  it('the list of models of an endpoint may be empty', () => {
    expect(read({ data: [] }).empty).toBe(true);
  });

  it('the list of models of an endpoint is bounded in models and in the length of a name', () => {
    const data = Array.from({ length: SERVED_MODELS_MAX + 10 }, (_, i) => ({ id: `${i}${'x'.repeat(1_000)}` }));
    const models = read({ data }).reader.models.get('default/a')!;
    expect(models).toHaveLength(SERVED_MODELS_MAX);
    expect(models[0]!.id).toHaveLength(256);
  });

  it.each(['', 'no JSON', '{"data": 3}', '{"data": [{"name": "a"}]}'])(
    'the list of models of an endpoint that is %s is a fault, and the last one stays',
    (body) => {
      const { reader } = read({ data: [{ id: 'm' }] });
      expect(() => read(body, reader)).toThrow();
      expect(reader.models.get('default/a')).toHaveLength(1);
    },
  );

  it('the list of models of an endpoint goes with the endpoint', () => {
    const { reader } = read({ data: [{ id: 'm' }] });
    reader.forget('default/a');
    expect(reader.models.size).toBe(0);
  });
});
