import type { HeardRequest } from '../../core/silence-table.js';
import type { TrainingSample } from '../../core/training-sample.js';
import type { UsualTimes } from './usual-times.js';

/** What is known of an endpoint with requests in flight. Times are milliseconds of the pool clock. */
export interface Evidence {
  readonly requests: readonly HeardRequest[];
  /** Last output of the endpoint, of whatever request; 0 = none. */
  readonly heardMs: number;
  /** Time since which every fresh scrape has reported nothing running or waiting; undefined = the last one has not. */
  readonly idleSinceMs: number | undefined;
  /** Whether the engine's KV cache has changed of late: it works on something. Undefined = the signal is unknown. */
  readonly works: boolean | undefined;
  readonly times: UsualTimes;
  /** Requests since the last byte whose clients gave up although output was due; undefined = none. */
  readonly abandoned?: Abandoned | undefined;
}

/** Requests that ended without a byte. */
export interface Abandoned {
  readonly count: number;
  /** Decision of the first one. */
  readonly sinceMs: number;
}

/** A silent endpoint. */
export interface Silence {
  /** Requests without a byte for longer than they should be. */
  readonly overdue: number;
  /** Time without a byte, and the time within which one should have come, of the request that is longest overdue. */
  readonly quietMs: number;
  readonly allowedMs: number;
  /** Whether the engine says that nothing runs or waits. */
  readonly idle: boolean;
}

/** Several times what a first output or a step of output usually takes. */
const PATIENCE = 5;
/** The same of a whole answer: its time is taken from the longest ones, not from the mean. */
const WHOLE_PATIENCE = 2;
/** Output tokens that an answer of unknown length may have, unless longer ones were seen. */
const OUTPUT_TOKENS = 2_048;
/** Silence that is never too long: compilation of a graph or a grammar, an adapter that is loaded. */
export const QUIET_MS = 10_000;
/** The same where less is known: no fresh signals, no prompt, or the end of the answer alone. */
export const QUIET_BLIND_MS = 30_000;
/** The same where the engine itself reports nothing running or waiting. */
export const QUIET_IDLE_MS = 5_000;
/**
 * Time that a prompt token may take at least: 2,000 tokens per second, a tenth of what a small accelerator computes.
 */
const TOKEN_MS = 0.5;
/** The same where the engine has nothing to do: its server may still cut the prompt into tokens. */
const TOKEN_IDLE_MS = 0.1;
/** Factor while the engine works on something: requests of other replicas, or output that its server holds back. */
const WORKS = 6;
/** Bound of overdue requests for a judgement, as two failures eject. One alone is enough after ALONE times as long. */
const OVERDUE_MIN = 2;
/** Wait of a client that gave up, below which it shows nothing. */
const ABANDONED_MS = 1_000;
const ALONE = 3;

/**
 * Uncached tokens without a first output: of prompts that waited at the last byte, and the most of one that came later.
 */
interface Prompts {
  readonly before: number;
  readonly later: number;
}

/**
 * Judges an endpoint by the requests in flight there: every byte of any of them starts the time of all again. A request
 * that was overdue before another one got a byte is stuck for a reason of its own (a client that reads nothing), and
 * counts no more.
 * @returns undefined = it is not silent
 */
export function silenceOf(evidence: Evidence, nowMs: number): Silence | undefined {
  const { idleSinceMs } = evidence;
  const requests = evidence.requests.filter(({ expects, heardMs }) => expects !== 'later' || heardMs !== 0);
  const heardMs = requests.reduce((last, request) => Math.max(last, request.heardMs), evidence.heardMs);
  const prompts = promptsOf(requests, heardMs);
  const overdue: Omit<Silence, 'overdue' | 'idle'>[] = [];
  for (const request of requests) {
    const ownMs = Math.max(request.chargedMs, request.heardMs);
    const tokens = tokensBefore(request, prompts, heardMs);
    const patienceMs = patienceOf(request, evidence, tokens);
    if (heardMs > ownMs + patienceMs) continue;
    // An engine that became idle after the last byte has its time from there on.
    const quietMs = nowMs - Math.max(heardMs, ownMs, idleSinceMs ?? 0);
    const allowedMs = idleSinceMs === undefined ? patienceMs : idlePatienceOf(request, tokens);
    if (quietMs > allowedMs) overdue.push({ quietMs, allowedMs });
  }
  const givenUp = abandonedOf(evidence, heardMs, nowMs);
  if (givenUp !== undefined) return givenUp;
  if (overdue.length < OVERDUE_MIN && !overdue.some((one) => one.quietMs > ALONE * one.allowedMs)) return undefined;
  const worst = overdue.reduce((one, other) => (excessOf(other) > excessOf(one) ? other : one));
  return { overdue: overdue.length, ...worst, idle: idleSinceMs !== undefined };
}

/**
 * Silence as clients show it that wait for less than the least quiet time: each gave up when its output was overdue.
 */
function abandonedOf({ abandoned, works, idleSinceMs }: Evidence, heardMs: number, nowMs: number): Silence | undefined {
  if (abandoned === undefined || abandoned.count < OVERDUE_MIN || abandoned.sinceMs <= heardMs) return undefined;
  const quietMs = nowMs - abandoned.sinceMs;
  const allowedMs = (works === undefined ? QUIET_BLIND_MS : QUIET_MS) * (works === true ? WORKS : 1);
  if (quietMs <= allowedMs) return undefined;
  return { overdue: abandoned.count, quietMs, allowedMs, idle: idleSinceMs !== undefined };
}

/** Whether a client gave up when the first output of its stream was overdue. @param times usual ones of the endpoint */
export function isAbandoned(sample: TrainingSample, times: UsualTimes): boolean {
  const { outcome, unheard, durationMs, uncachedTokens, prefillTokens, promptTokens, staged } = sample;
  if (outcome !== 'aborted' || !unheard || staged || promptTokens === 0) return false;
  const tokens = uncachedTokens + prefillTokens;
  return durationMs > Math.max(ABANDONED_MS, PATIENCE * times.firstMs(tokens)) + TOKEN_MS * tokens;
}

/** Whether an endpoint has been without a byte for long enough to be judged. */
export function isWorthJudging(quietMs: number): boolean {
  return quietMs > QUIET_IDLE_MS;
}

/** Whether a request has waited for a byte for longer than it should, whatever others got. */
export function isOverdue(request: HeardRequest, evidence: Evidence, nowMs: number): boolean {
  const tokens = request.tokensAhead + request.uncachedTokens;
  return nowMs - Math.max(request.chargedMs, request.heardMs) > patienceOf(request, evidence, tokens);
}

function excessOf({ quietMs, allowedMs }: Omit<Silence, 'overdue' | 'idle'>): number {
  return quietMs - allowedMs;
}

function promptsOf(requests: readonly HeardRequest[], heardMs: number): Prompts {
  let before = 0;
  let later = 0;
  for (const { heardMs: own, chargedMs, uncachedTokens } of requests) {
    if (own !== 0) continue;
    if (chargedMs <= heardMs) before += uncachedTokens;
    else later = Math.max(later, uncachedTokens);
  }
  return { before, later };
}

/**
 * Uncached tokens that may be computed before the next byte: those waiting at the last byte, or those before the
 * request, and the longest later prompt, which an engine may prefer. Later prompts are left out: they would put the
 * judgement off without end.
 */
function tokensBefore(request: HeardRequest, { before, later }: Prompts, heardMs: number): number {
  return later + (request.chargedMs <= heardMs ? before : request.tokensAhead + request.uncachedTokens);
}

/** Time without a byte that is no silence, by one request's sizes. */
function patienceOf(request: HeardRequest, { times, works }: Evidence, tokens: number): number {
  const blind = works === undefined || request.promptTokens === 0 || request.expects === 'end';
  const leastMs = (blind ? QUIET_BLIND_MS : QUIET_MS) + TOKEN_MS * tokens;
  return Math.max(usualOf(request, times, tokens), leastMs) * (works === true ? WORKS : 1);
}

/** The same while the engine reports nothing running or waiting. */
function idlePatienceOf({ promptTokens }: HeardRequest, tokens: number): number {
  return (promptTokens === 0 ? QUIET_BLIND_MS : QUIET_IDLE_MS) + TOKEN_IDLE_MS * tokens;
}

function usualOf({ heardMs, expects, outputLimit }: HeardRequest, times: UsualTimes, tokens: number): number {
  const firstMs = PATIENCE * times.firstMs(tokens);
  if (heardMs !== 0) return PATIENCE * (times.stepMs ?? times.longestMs) + (tokens === 0 ? 0 : firstMs);
  return expects === 'end' ? firstMs + WHOLE_PATIENCE * wholeMs(times, outputLimit) : firstMs;
}

/** Time of the whole output of an answer. @param limit its bound on output tokens; 0 = unknown */
function wholeMs({ stepMs, longestMs, longestTokens }: UsualTimes, limit: number): number {
  const usual = Math.max(OUTPUT_TOKENS, longestTokens);
  if (stepMs === undefined) return longestMs;
  return limit === 0 ? Math.max(longestMs, stepMs * usual) : stepMs * Math.min(limit, usual);
}
