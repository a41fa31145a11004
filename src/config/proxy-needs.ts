import { saturationReads } from '../admission/shedding.js';
import { type ReadName, readsOf } from '../core/operations.js';
import type { LoadedConfiguration } from './load.js';

/**
 * Parts of an answer, each with all before it: `end` and `status` come with headers and trailers, the others with
 * bodies.
 */
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

/**
 * Part of a request or answer that the proxy must send for an input to be right: the prompt, or the part of the answer
 * at which the charge of the prompt ends. `nothing` = the input comes from the pool or from the request's headers, or
 * another need names its part: the prefix index, the predictor, hook plugins.
 */
const FED_BY: Readonly<Record<ReadName, 'nothing' | 'prompt' | 'first token' | 'every chunk'>> = {
  known: 'nothing',
  waiting: 'nothing',
  running: 'nothing',
  kvUsage: 'nothing',
  blockTokens: 'nothing',
  blockCount: 'nothing',
  slotsSeen: 'nothing',
  slotsFull: 'nothing',
  starts: 'nothing',
  inflightScraped: 'nothing',
  signalTime: 'nothing',
  attributes: 'nothing',
  adaptersRunning: 'nothing',
  adaptersWaiting: 'nothing',
  adaptersMax: 'nothing',
  adaptersSent: 'prompt',
  inflight: 'nothing',
  inflightTokens: 'first token',
  prefillTokens: 'first token',
  promptTokens: 'prompt',
  prefillRate: 'prompt',
  prefillRateTime: 'nothing',
  prefillRatePeak: 'prompt',
  activeBlocks: 'prompt',
  outputBlocks: 'every chunk',
  strictestTpot: 'nothing',
  coldOrder: 'nothing',
  sessions: 'nothing',
  speed: 'nothing',
  hitReliability: 'nothing',
  hitShare: 'prompt',
  charged: 'nothing',
  costBase: 'nothing',
  costPrefill: 'nothing',
  costWaiting: 'nothing',
  costStep: 'nothing',
  costGrowth: 'nothing',
  matches: 'nothing',
  overlap: 'prompt',
  predictions: 'nothing',
  hookColumn: 'nothing',
  labels: 'nothing',
  mask: 'nothing',
  promptLength: 'prompt',
  model: 'prompt',
  headers: 'nothing',
  wantedTimes: 'nothing',
  earlierPick: 'nothing',
};

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
  const reading = fedBy(configuration, ['prompt', 'first token', 'every chunk']);
  return [
    ...(prefix === undefined ? [] : [`${prefixProducer?.name ?? 'the prefix cache'} hashes it`]),
    ...(tokens === undefined ? [] : ['its tokens are counted']),
    ...(prediction === undefined ? [] : [`${prediction.name} predicts by its length`]),
    ...reading.map((name) => `${name} reads its length or its model`),
    ...host.map(({ name }) => `hook plugin ${name} may read it`),
    ...(flowControl === undefined ? [] : ['flow control counts its tokens and bytes']),
    ...(adaptation.mode === 'off' ? [] : [`adaptation (${adaptation.mode}) learns by its length`]),
  ];
}

function answerNeeds(configuration: Decisive): readonly AnswerNeed[] {
  const { scheduling, adaptation, flowControl } = configuration;
  const { prediction, host } = scheduling;
  const needs = (part: AnswerPart, reasons: readonly string[]) => reasons.map((why) => ({ part, why }));
  return [
    ...needs('status', ['failing endpoints are ejected']),
    ...needs(
      'first token',
      fedBy(configuration, ['first token']).map((name) => `${name} counts prompts until their first token`),
    ),
    ...needs('first token', flowControl === undefined ? [] : ['flow control counts prompts until their first token']),
    ...needs(
      'usage',
      host.map(({ name }) => `hook plugin ${name} may report it`),
    ),
    ...needs(
      'every chunk',
      fedBy(configuration, ['every chunk']).map((name) => `${name} counts the blocks of output`),
    ),
    ...needs('every chunk', prediction === undefined ? [] : [`${prediction.name} learns the time of each token`]),
    ...needs(
      'every chunk',
      adaptation.mode === 'off' ? [] : [`adaptation (${adaptation.mode}) learns the time of each token`],
    ),
  ];
}

/** Names of the plugins and the detector with inputs from one of the messages, without duplicates. */
function fedBy({ scheduling, saturationDetector }: Decisive, messages: readonly string[]): readonly string[] {
  // With estimated output a charge of tokens stays until the end of the answer.
  const charged = scheduling.estimateOutput === undefined ? FED_BY : { ...FED_BY, inflightTokens: 'prompt' };
  const fed = (reads: readonly ReadName[]) => reads.some((read) => messages.includes(charged[read]));
  const operations = scheduling.profiles.flatMap((profile) => profile.operations);
  const names = operations.filter((operation) => fed(readsOf(operation))).map(({ name }) => name);
  const detector = saturationDetector !== undefined && fed(saturationReads(saturationDetector));
  return [...new Set(detector ? [...names, saturationDetector.type] : names)];
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
