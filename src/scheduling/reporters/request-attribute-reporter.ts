import { z } from 'zod';
import type { Usage } from '../../core/types.js';
import { errorMessage } from '../../runtime/error-message.js';
import { PATIENT_BUDGET_MS } from '../hooks/plugin-guard.js';
import { definePlugin } from '../plugin.js';
import { compileExpression } from './expression.js';

const DEFAULT_NAMESPACE = 'envoy.lb';

/** Allowed types of an expression's value; the type of `dyn` is known only with an answer. */
const NUMBERS: ReadonlySet<string> = new Set(['int', 'uint', 'double', 'dyn']);
const CONDITIONS: ReadonlySet<string> = new Set(['bool', 'dyn']);

/** Refuses an expression that does not compile, or whose value is sure to have another type. */
function checked(types: ReadonlySet<string>, expected: string) {
  return (text: string, context: z.core.$RefinementCtx<string>) => {
    if (text === '') return;
    try {
      const { type } = compileExpression(text);
      if (types.has(type)) return;
      context.addIssue({ code: 'custom', message: `expected ${expected}, but its value is of type ${type}` });
    } catch (error) {
      context.addIssue({ code: 'custom', message: `failed to compile: ${errorMessage(error)}` });
    }
  };
}

const attribute = () =>
  z.strictObject({
    key: z
      .strictObject({
        namespace: z.string().default('').describe(`Namespace of the metadata; empty = ${DEFAULT_NAMESPACE}.`),
        name: z.string().min(1, { error: 'cannot be empty' }).describe('Key in that namespace.'),
      })
      .describe('Where the value goes.'),
    expression: z
      .string()
      .min(1, { error: 'cannot be empty' })
      .superRefine(checked(NUMBERS, 'a number'))
      .describe('The value: a CEL expression over `usage`, whose result is a number. Fractions are cut off.'),
    condition: z
      .string()
      .default('')
      .superRefine(checked(CONDITIONS, 'true or false'))
      .describe('CEL expression over `usage` that says whether to report; empty = always.'),
  });

const parameters = () =>
  z.strictObject({
    attributes: z
      .array(attribute())
      .length(1, { error: 'attributes must contain exactly one entry' })
      .describe('What is reported: exactly one entry.'),
  });

/** The usage for expressions: the JSON of OpenAI's `usage`, all numbers doubles, unknown counts 0. */
function usageObject({ promptTokens, completionTokens, totalTokens, cachedTokens }: Readonly<Usage>) {
  const known = (tokens: number) => Math.max(tokens, 0);
  return {
    prompt_tokens: known(promptTokens),
    completion_tokens: known(completionTokens),
    total_tokens: known(totalTokens),
    ...(cachedTokens < 0 ? {} : { prompt_tokens_details: { cached_tokens: cachedTokens } }),
  };
}

/** A full usage, for testing an expression before the first answer. */
const SAMPLE = usageObject({ promptTokens: 10, completionTokens: 5, totalTokens: 15, cachedTokens: 4 });

export const requestAttributeReporter = definePlugin({
  type: 'request-attribute-reporter',
  kinds: ['reporter'],
  stability: 'Beta',
  doc:
    'Works a number out of the usage of an answer and gives it to the proxy as dynamic metadata. In the expression, ' +
    '`usage` has prompt_tokens, completion_tokens, total_tokens and, where the server tells it, ' +
    'prompt_tokens_details.cached_tokens, all of them doubles: `usage.prompt_tokens * 2.0`. A result of 0 is left out.',
  parameters,
  advise: ({ attributes }) =>
    [attributes[0]!.condition, attributes[0]!.expression].flatMap((text) => {
      if (text === '') return [];
      try {
        compileExpression(text).evaluate(SAMPLE);
        return [];
      } catch (error) {
        const why = errorMessage(error).split('\n', 1)[0];
        return [`"${text}" fails with a usual usage (${why}): numbers of usage are doubles, write 1.0 for 1`];
      }
    }),
  budgetMs: PATIENT_BUDGET_MS,
  host: ({ attributes }, { log, name }) => {
    const { key, expression, condition } = attributes[0]!;
    const value = compileExpression(expression);
    const wanted = condition === '' ? undefined : compileExpression(condition);
    let told = false;
    return {
      report: (_request, usage, metadata) => {
        const seen = usageObject(usage);
        try {
          if (wanted !== undefined && wanted.evaluate(seen) !== true) return;
          const number = wholeNumber(value.evaluate(seen));
          if (number !== 0) metadata.set(key.namespace || DEFAULT_NAMESPACE, key.name, number);
        } catch (error) {
          // Not a failure of the plugin: an answer may lack a field of the expression.
          if (told) return;
          told = true;
          log.warn({ plugin: name, error: errorMessage(error) }, 'an expression could not be worked out');
        }
      },
    };
  },
});

/** Converts CEL's int and uint, which are bigint. @throws when the value is no finite number */
function wholeNumber(value: unknown): number {
  const number = typeof value === 'bigint' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isFinite(number))
    throw new Error(`the value ${String(value)} is no number`);
  return Math.trunc(number);
}
