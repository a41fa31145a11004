import { CORE } from '../core/core-names.js';
import type { OperationName } from '../core/programs.js';
import type { ProgramOperation } from '../scheduling/program.js';
import type { LoadedConfiguration } from './load.js';

/** Parts of an answer, each with all before it: `end` and `status` come with headers and trailers, the others with bodies. */
const ANSWER_PARTS = ['end', 'status', 'first token', 'usage', 'every chunk'] as const;
export type AnswerPart = (typeof ANSWER_PARTS)[number];

/** A part that is needed, and for what. */
export interface AnswerNeed {
  readonly part: AnswerPart;
  readonly why: string;
}

/** The messages of a proxy that the decisions of a configuration depend on (docs/guides/processing-modes.md). */
export interface ProxyNeeds {
  /** Reasons why the request's body is read; empty = its headers suffice. */
  readonly prompt: readonly string[];
  /** Needs of the answer with the largest part; never empty. */
  readonly answer: readonly AnswerNeed[];
}

type Decisive = Pick<LoadedConfiguration, 'scheduling' | 'adaptation' | 'flowControl' | 'saturationDetector'>;

/** Operations that read the prompt's length or the model beside those that match prefixes. */
const READS_PROMPT: ReadonlySet<OperationName> = new Set<OperationName>([
  'OP_FILTER_CONTEXT_LENGTH',
  'OP_SCORE_CONTEXT_LENGTH',
  'OP_SCORE_ADAPTER',
  'OP_SCORE_TOKEN_LOAD',
  'OP_SCORE_LMETRIC',
  'OP_SCORE_LATENCY',
  'OP_SCORE_MARGINAL_COST',
]);

/** Operations that read the prompt tokens whose first output has not come. */
const READS_PREFILL: ReadonlySet<OperationName> = new Set<OperationName>([
  'OP_FILTER_PREFIX_AFFINITY',
  'OP_FILTER_STICKY',
  'OP_SCORE_TOKEN_LOAD',
  'OP_SCORE_LMETRIC',
  'OP_SCORE_EXPLOIT_EXPLORE',
  'OP_SCORE_MARGINAL_COST',
]);

/** Operations whose first parameter names the value that they read. */
const READS_VALUE: ReadonlySet<OperationName> = new Set<OperationName>([
  'OP_FILTER_THRESHOLD',
  'OP_FILTER_RANGE',
  'OP_FILTER_LOWEST',
  'OP_SCORE_ATTRIBUTE',
]);

/** Whether the operation reads the tokens in flight of endpoints, from the prompts and until their first output. */
function readsTokensInFlight({ code, parameters }: ProgramOperation): boolean {
  if (READS_VALUE.has(code)) return parameters[0] === CORE.VALUE_ACTIVE_TOKENS;
  if (code === 'OP_FILTER_CONCURRENCY') return Number.isFinite(parameters[1]);
  return READS_PREFILL.has(code);
}

/** The detector that compares tokens in flight with a limit, if it is one. */
function tokenDetector({ saturationDetector: detector }: Decisive): readonly string[] {
  return detector?.type === 'concurrency-detector' && detector.mode !== 'requests' ? [detector.type] : [];
}

/** Needs of a configuration. Metrics are not among them: they count what there is. */
export function proxyNeeds(configuration: Decisive): ProxyNeeds {
  return { prompt: promptNeeds(configuration), answer: largest(answerNeeds(configuration)) };
}

/** Whether bodies of answers are read for decisions. */
export function readsAnswerBodies({ answer }: ProxyNeeds): boolean {
  return answer.some(({ part }) => ANSWER_PARTS.indexOf(part) > ANSWER_PARTS.indexOf('status'));
}

function promptNeeds(configuration: Decisive): readonly string[] {
  const { scheduling, adaptation, flowControl } = configuration;
  const { prefix, prefixProducer, tokens, prediction, host } = scheduling;
  const lengths = [
    ...operationsIn(scheduling, (each) => READS_PROMPT.has(each.code) || readsTokensInFlight(each)),
    ...tokenDetector(configuration),
  ];
  return [
    ...(prefix === undefined ? [] : [`${prefixProducer?.name ?? 'the prefix cache'} hashes it`]),
    ...(tokens === undefined ? [] : ['its tokens are counted']),
    ...(prediction === undefined ? [] : [`${prediction.name} predicts by its length`]),
    ...[...new Set(lengths)].map((name) => `${name} reads its length or its model`),
    ...host.map(({ name }) => `hook plugin ${name} may read it`),
    ...(flowControl === undefined ? [] : ['flow control counts its tokens and bytes']),
    ...(adaptation.mode === 'off' ? [] : [`adaptation (${adaptation.mode}) learns by its length`]),
  ];
}

function answerNeeds(configuration: Decisive): readonly AnswerNeed[] {
  const { scheduling, adaptation, flowControl } = configuration;
  const { prediction, host } = scheduling;
  const counting = [...operationsIn(scheduling, readsTokensInFlight), ...tokenDetector(configuration)];
  const blocks = operationsIn(scheduling, ({ code }) => code === 'OP_SCORE_ACTIVE_BLOCKS');
  const needs = (part: AnswerPart, reasons: readonly string[]) => reasons.map((why) => ({ part, why }));
  return [
    ...needs('status', ['failing endpoints are ejected']),
    ...needs(
      'first token',
      [...new Set(counting)].map((name) => `${name} counts prompts until their first token`),
    ),
    ...needs('first token', flowControl === undefined ? [] : ['flow control counts prompts until their first token']),
    ...needs(
      'usage',
      host.map(({ name }) => `hook plugin ${name} may report it`),
    ),
    ...needs(
      'every chunk',
      blocks.map((name) => `${name} counts the blocks of output`),
    ),
    ...needs('every chunk', prediction === undefined ? [] : [`${prediction.name} learns the time of each token`]),
    ...needs(
      'every chunk',
      adaptation.mode === 'off' ? [] : [`adaptation (${adaptation.mode}) learns the time of each token`],
    ),
  ];
}

/** Names of the plugins with an operation that `reads`, each once. */
function operationsIn(
  { profiles }: Pick<LoadedConfiguration['scheduling'], 'profiles'>,
  reads: (operation: ProgramOperation) => boolean,
): readonly string[] {
  const operations = profiles.flatMap((profile) => profile.operations);
  return [...new Set(operations.filter(reads).map(({ name }) => name))];
}

function largest(needs: readonly AnswerNeed[]): readonly AnswerNeed[] {
  const most = Math.max(...needs.map(({ part }) => ANSWER_PARTS.indexOf(part)));
  return needs.filter(({ part }) => part === ANSWER_PARTS[most]);
}

/** The needs in words, for people: of the request, then of the answer. */
export function needsInWords({ prompt, answer }: ProxyNeeds): { readonly request: string; readonly answer: string } {
  const [first] = answer;
  return {
    request: prompt.length === 0 ? 'its headers suffice' : `its body: ${prompt.join('; ')}`,
    answer: `${first!.part}: ${answer.map(({ why }) => why).join('; ')}`,
  };
}
