import { errorMessage } from '../../src/runtime/error-message.js';
import { AnswerHeaders, AnswerMetadata, PlacedHeaders } from '../../src/scheduling/hooks/header-edits.js';
import type { Denial, EndpointViews, HookPlugin } from '../../src/scheduling/hooks/hooks.js';
import type { PluginDefinition, RejectionCode } from '../../src/scheduling/plugin.js';
import { parsed } from './definition-checks.js';
import { must, type PluginCheck, PluginFault, shown } from './plugin-check.js';
import { CELLS, type Situation, sampleContext, samplePlacement, situations } from './sample-request.js';

/** Hooks that a request passes, in order. */
const HOOKS = [
  'requestHeaders',
  'hold',
  'screen',
  'admit',
  'produce',
  'match',
  'filter',
  'score',
  'placed',
  'responseHeaders',
  'report',
] as const;
type Hook = (typeof HOOKS)[number];

const WITHOUT_ENDPOINTS: ReadonlySet<Hook> = new Set<Hook>(['requestHeaders', 'responseHeaders', 'report']);

const CODES: ReadonlySet<RejectionCode> = new Set<RejectionCode>([
  'BadRequest',
  'Unauthorized',
  'Forbidden',
  'NotFound',
  'RequestTimeout',
  'PreconditionFailed',
  'ResourceExhausted',
  'Internal',
  'ServiceUnavailable',
  'PayloadTooLarge',
]);

/** Result of one call of a hook. */
interface Called {
  readonly situation: Situation;
  readonly result: unknown;
  readonly error: unknown;
  /** Cells of the column that the hook was given; empty for hooks without one. */
  readonly column: Float32Array;
  /** Whether the hook changed what it may only read. */
  readonly wrote: boolean;
}

/** Value that a column has everywhere before the hook. */
function blank(hook: Hook): number {
  return hook === 'filter' ? 1 : 0;
}

function call(plugin: HookPlugin, hook: Hook, situation: Situation, column: Float32Array): unknown {
  const { request, endpoints } = situation;
  const placement = samplePlacement(situation);
  switch (hook) {
    case 'requestHeaders':
      return plugin.requestHeaders?.(request);
    case 'hold':
    case 'screen':
    case 'admit':
    case 'produce':
      return plugin[hook]?.(request, endpoints);
    case 'match':
    case 'filter':
    case 'score':
      return plugin[hook]?.(request, endpoints, column);
    case 'placed':
      return placement && plugin.placed?.(request, placement, endpoints, new PlacedHeaders());
    case 'responseHeaders': {
      const head = { status: 200, headers: request.headers, served: placement?.endpoints[0]?.address, balanced: true };
      return placement && plugin.responseHeaders?.(request, new AnswerHeaders(head, placement.endpoints[0]!));
    }
    case 'report': {
      const usage = { promptTokens: 512, completionTokens: 32, totalTokens: 544, cachedTokens: -1 };
      return placement && plugin.report?.(request, usage, new AnswerMetadata());
    }
  }
}

function readable({ slots, all, waiting, running, kvUsage, inflight, inflightTokens, matchedBlocks }: EndpointViews) {
  const columns = [waiting, running, kvUsage, inflight, inflightTokens, matchedBlocks];
  return JSON.stringify([slots, all, ...columns.map((cells) => [...cells])]);
}

/** Calls a hook in every situation, after the hooks before it. A fresh instance has each situation to itself. */
function calls(make: () => HookPlugin, wanted: Hook): readonly Called[] {
  return situations().map((situation) => {
    const plugin = make();
    for (const hook of HOOKS) {
      const column = new Float32Array(CELLS).fill(blank(hook));
      const before = readable(situation.endpoints);
      let result: unknown;
      let error: unknown;
      try {
        result = call(plugin, hook, situation, column);
      } catch (thrown) {
        error = thrown;
      }
      if (isPromise(result)) result.then(undefined, () => {});
      if (hook === wanted) return { situation, result, error, column, wrote: readable(situation.endpoints) !== before };
    }
    throw new PluginFault(`there is no hook ${wanted}`);
  });
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Rules of one hook. `each` states the rules for a call that did not throw. */
function hookRules(make: () => HookPlugin, hook: Hook): readonly PluginCheck[] {
  const rule = (name: string, each: (called: Called) => void): PluginCheck => ({
    name: `${hook}: ${name}`,
    run: () => calls(make, hook).forEach(each),
  });
  const where = ({ situation }: Called) => `with ${situation.name}`;
  const rules = [
    rule('throws nothing', (called) =>
      must(called.error === undefined, () => `it throws ${where(called)}: ${errorMessage(called.error)}`),
    ),
  ];
  if (!WITHOUT_ENDPOINTS.has(hook)) {
    const unchanged = (called: Called) => must(!called.wrote, () => `it changes columns or slots ${where(called)}`);
    rules.push(rule('leaves the endpoints as they are', unchanged));
  }
  if (hook !== 'hold') {
    const synchronous = (called: Called) =>
      must(!isPromise(called.result), () => `it returns a promise ${where(called)}`);
    rules.push(rule('answers at once', synchronous));
  }
  return [...rules, ...answerRules(hook, rule, where)];
}

function answerRules(
  hook: Hook,
  rule: (name: string, each: (called: Called) => void) => PluginCheck,
  where: (called: Called) => string,
): readonly PluginCheck[] {
  switch (hook) {
    case 'filter':
    case 'match':
    case 'score':
      return columnRules(hook, rule, where);
    case 'screen':
      return [
        rule('answers slots that it was given', (called) => {
          if (called.result === undefined || isPromise(called.result)) return;
          const { slots } = called.situation.endpoints;
          const foreign = [...(called.result as readonly number[])].find((slot) => !slots.includes(slot));
          must(foreign === undefined, () => `it answers slot ${foreign} ${where(called)}`);
        }),
      ];
    case 'admit':
      return [
        rule('answers a denial with a known code and a message, or nothing', (called) => {
          if (called.result === undefined || isPromise(called.result)) return;
          const { code, message } = called.result as Denial;
          must(CODES.has(code), () => `the code is ${shown(code)} ${where(called)}`);
          must(typeof message === 'string' && message !== '', () => `there is no message ${where(called)}`);
        }),
      ];
    case 'hold':
      return [
        rule('answers a promise or nothing', (called) =>
          must(called.result === undefined || isPromise(called.result), () => `it answers ${shown(called.result)}`),
        ),
      ];
    default:
      return [];
  }
}

function columnRules(
  hook: 'filter' | 'match' | 'score',
  rule: (name: string, each: (called: Called) => void) => PluginCheck,
  where: (called: Called) => string,
): readonly PluginCheck[] {
  const slotWith = ({ column }: Called, wrong: (value: number, slot: number) => boolean) =>
    [...column].findIndex((value, slot) => wrong(value, slot));
  const none = (called: Called, wrong: (value: number, slot: number) => boolean) => {
    const slot = slotWith(called, wrong);
    must(slot < 0, () => `slot ${slot} has ${called.column[slot]} ${where(called)}`);
  };
  const rules = [
    rule('writes numbers', (called) => none(called, (value) => Number.isNaN(value))),
    rule('writes no slot beside those of the pool', (called) => {
      const { all } = called.situation.endpoints;
      none(called, (value, slot) => !all.includes(slot) && value !== blank(hook) && !Number.isNaN(value));
    }),
  ];
  if (hook === 'filter') return rules;
  return [...rules, rule('writes shares from 0 to 1', (called) => none(called, (value) => value < 0 || value > 1))];
}

/** Rules of hook plugins: one list for every hook that the plugin has. */
export function hookChecks(definition: PluginDefinition, parameters: unknown): readonly PluginCheck[] {
  const { host, type } = definition;
  if (host === undefined) return [];
  const make = () => host(parsed(definition, parameters), sampleContext(type));
  const starts: PluginCheck = { name: 'hooks: the plugin starts, and closes', run: () => make().close?.() };
  let hooks: readonly Hook[];
  try {
    const plugin = make();
    hooks = HOOKS.filter((hook) => plugin[hook] !== undefined);
    plugin.close?.();
  } catch {
    return [starts];
  }
  return [starts, ...hooks.flatMap((hook) => hookRules(make, hook))];
}
