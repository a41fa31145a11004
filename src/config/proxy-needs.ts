import type { OperationName } from '../core/programs.js';
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

type Decisive = Pick<LoadedConfiguration, 'scheduling' | 'adaptation' | 'flowControl'>;

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
  'OP_FILTER_CONCURRENCY',
  'OP_FILTER_PREFIX_AFFINITY',
  'OP_FILTER_STICKY',
  'OP_SCORE_TOKEN_LOAD',
  'OP_SCORE_LMETRIC',
  'OP_SCORE_EXPLOIT_EXPLORE',
]);

/** Needs of a configuration. Metrics are not among them: they count what there is. */
export function proxyNeeds(configuration: Decisive): ProxyNeeds {
  return { prompt: promptNeeds(configuration), answer: largest(answerNeeds(configuration)) };
}

/** Whether bodies of answers are read for decisions. */
export function readsAnswerBodies({ answer }: ProxyNeeds): boolean {
  return answer.some(({ part }) => ANSWER_PARTS.indexOf(part) > ANSWER_PARTS.indexOf('status'));
}

function promptNeeds({ scheduling, adaptation, flowControl }: Decisive): readonly string[] {
  const { prefix, prefixProducer, tokens, prediction, host } = scheduling;
  return [
    ...(prefix === undefined ? [] : [`${prefixProducer?.name ?? 'the prefix cache'} hashes it`]),
    ...(tokens === undefined ? [] : ['its tokens are counted']),
    ...(prediction === undefined ? [] : [`${prediction.name} predicts by its length`]),
    ...operationsIn(scheduling, READS_PROMPT).map((name) => `${name} reads its length or its model`),
    ...host.map(({ name }) => `hook plugin ${name} may read it`),
    ...(flowControl === undefined ? [] : ['flow control counts its tokens and bytes']),
    ...(adaptation.mode === 'off' ? [] : [`adaptation (${adaptation.mode}) learns by its length`]),
  ];
}

function answerNeeds({ scheduling, adaptation, flowControl }: Decisive): readonly AnswerNeed[] {
  const { prediction, host, profiles } = scheduling;
  const blocks = operationsIn(scheduling, new Set<OperationName>(['OP_SCORE_ACTIVE_BLOCKS']));
  const needs = (part: AnswerPart, reasons: readonly string[]) => reasons.map((why) => ({ part, why }));
  return [
    ...needs('status', ['failing endpoints are ejected']),
    ...needs(
      'first token',
      operationsIn({ profiles }, READS_PREFILL).map((name) => `${name} counts prompts until their first token`),
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

/** Names of the plugins whose operations are among `codes`, each once. */
function operationsIn(
  { profiles }: Pick<LoadedConfiguration['scheduling'], 'profiles'>,
  codes: ReadonlySet<OperationName>,
): readonly string[] {
  const operations = profiles.flatMap((profile) => profile.operations);
  return [...new Set(operations.filter(({ code }) => codes.has(code)).map(({ name }) => name))];
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
