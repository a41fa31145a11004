import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { skipReason } from '../kubernetes/api-server.ts';
import { gieCrds } from '../kubernetes/cluster.ts';

const kinds = ['InferenceObjective', 'InferenceModelRewrite'] as const;

/** A definition without the descriptions of its fields. */
function fields(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fields);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([key, text]) => key !== 'description' || typeof text !== 'string');
  return Object.fromEntries(entries.map(([key, inner]) => [key, fields(inner)]));
}

function own(kind: string) {
  const file = `../../deploy/crds/llm-d.ai_${kind.toLowerCase()}s.yaml`;
  return parse(readFileSync(new URL(file, import.meta.url), 'utf8'));
}

describe.skipIf(skipReason !== '')(`the custom resources of llm-d.ai${skipReason}`, () => {
  test.each(kinds)(
    'the custom resources of llm-d.ai have every field, limit and default of the %s of inference.networking.x-k8s.io',
    (kind) => {
      const [upstream] = gieCrds('v1.5.0', kind);
      const expected = fields(upstream!.spec) as { group: string; versions: [{ schema: never }] };
      expected.group = 'llm-d.ai';
      if (kind === 'InferenceObjective') {
        // The range of a priority, which upstream leaves open.
        const { openAPIV3Schema } = expected.versions[0].schema as { openAPIV3Schema: never };
        const { properties } = openAPIV3Schema as { properties: { spec: { properties: { priority: object } } } };
        Object.assign(properties.spec.properties.priority, { format: 'int32' });
      }
      expect(fields(own(kind).spec)).toEqual(expected);
    },
  );

  test.each(kinds)('the custom resources of llm-d.ai name themselves after their group: %s', (kind) => {
    expect(own(kind).metadata.name).toBe(`${kind.toLowerCase()}s.llm-d.ai`);
  });
});
