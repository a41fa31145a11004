import { isDeepStrictEqual } from 'node:util';
import type { PluginDefinition, PluginKind } from '../../src/scheduling/plugin.js';
import { z } from '../../src/scheduling/plugin.js';
import { must, type PluginCheck, PluginFault, shown } from './plugin-check.js';

type Method = Extract<
  keyof PluginDefinition,
  | 'compile'
  | 'host'
  | 'scheduler'
  | 'profileHandler'
  | 'decider'
  | 'orderingSettings'
  | 'fairnessSettings'
  | 'usageLimitSettings'
  | 'classifiesOutput'
  | 'reservesEndpoints'
>;

/** Methods of which a kind needs one; kinds that are missing here need none. */
const METHODS: Readonly<Partial<Record<PluginKind, readonly Method[]>>> = {
  filter: ['compile', 'host'],
  scorer: ['compile', 'host'],
  picker: ['compile'],
  admitter: ['compile', 'host'],
  screener: ['host'],
  'header-processor': ['host', 'classifiesOutput', 'reservesEndpoints'],
  reporter: ['host'],
  scheduler: ['scheduler'],
  'profile-handler': ['profileHandler'],
  decider: ['decider'],
  'ordering-policy': ['orderingSettings'],
  'fairness-policy': ['fairnessSettings'],
  'usage-limit-policy': ['usageLimitSettings'],
};

const kindsWith = (method: Method) =>
  (Object.keys(METHODS) as PluginKind[]).filter((kind) => METHODS[kind]!.includes(method));
/** Methods that belong to certain kinds; `host` may come with any. */
const OWNED = [...new Set(Object.values(METHODS).flat())].filter((method) => method !== 'host');

function rule(name: string, run: () => void): PluginCheck {
  return { name: `definition: ${name}`, run };
}

/** Rules of every definition, whatever it extends. Checks of accepted parameters are left out when there are none. */
export function definitionChecks(definition: PluginDefinition, parameters: unknown): readonly PluginCheck[] {
  const { type, kinds, doc } = definition;
  const accepted = definition.parameters.safeParse(parameters ?? {}).success;
  return [
    rule('the type is words in lower case, joined by hyphens', () =>
      must(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(type), () => `the type is ${shown(type)}`),
    ),
    rule('a paragraph says what it does', () => must(doc.trim() !== '', () => 'doc is empty')),
    rule('every kind has one of its methods', () => {
      for (const kind of kinds) {
        const wanted = METHODS[kind] ?? [];
        const has = wanted.length === 0 || wanted.some((method) => definition[method] !== undefined);
        must(has, () => `the kind ${kind} needs ${wanted.join(' or ')}`);
      }
    }),
    rule('every method belongs to one of the kinds', () => {
      for (const method of OWNED.filter((each) => definition[each] !== undefined)) {
        const owners = kindsWith(method);
        must(
          kinds.some((kind) => owners.includes(kind)),
          () => `${method} is without effect: it belongs to ${owners.join(', ')}`,
        );
      }
    }),
    rule('every parameter has a description', () => {
      for (const [field, schema] of Object.entries(shapeOf(definition))) {
        must((schema.description ?? '') !== '', () => `${field} has none: add .describe('…')`);
      }
    }),
    rule('the parameters are accepted', () => void parsed(definition, parameters)),
    ...(accepted ? acceptedChecks(definition, parameters) : []),
  ];
}

function acceptedChecks(definition: PluginDefinition, parameters: unknown): readonly PluginCheck[] {
  return [
    rule('what the parameters become is accepted again and stays the same', () => {
      const once = parsed(definition, parameters);
      must(isDeepStrictEqual(parsed(definition, once), once), () => 'a second check changes the parameters');
    }),
    rule('the parameters reach a shard as plain data', () => {
      const once = parsed(definition, parameters);
      must(isDeepStrictEqual(cloned(once), once), () => 'the parameters hold something that is no plain data');
    }),
    rule('an unknown parameter is refused', () => {
      const given = { ...(parsed(definition, parameters) as object), 'no-such-parameter': 1 };
      must(!definition.parameters.safeParse(given).success, () => 'it is accepted: use z.strictObject');
    }),
  ];
}

/** The checked parameters. @throws PluginFault with the first issue */
export function parsed({ parameters: schema }: PluginDefinition, given: unknown): unknown {
  const result = schema.safeParse(given ?? {});
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new PluginFault(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'the parameters are refused'}`);
}

function shapeOf({ parameters }: PluginDefinition): Readonly<Record<string, z.ZodType>> {
  return parameters instanceof z.ZodObject ? parameters.shape : {};
}

function cloned(value: unknown): unknown {
  try {
    return structuredClone(value);
  } catch {
    return undefined;
  }
}
