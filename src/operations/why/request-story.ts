import type { PlaceCounts } from '../../contract/block-place.js';
import type { CacheLoss } from '../../core/cache-loss.js';
import type { DecisionColumns, LoggedEndpoint, Removal } from '../../core/decision-columns.js';
import { cacheLossOfRecord, type DecisionEnd, type DecisionLog, type DecisionRecord } from '../../core/decision-log.js';
import { isScorer, type OperationName, type ScorerInputs, signalOf } from '../../core/operations.js';
import { type ShownRefusal, shownRefusal, waitOf, whyNoPick } from './refusal-text.js';
import { type RoomJudge, roomText } from './room-text.js';
import type { CandidateScores } from './scorer-use.js';
import type { RequestLabels, SeriesLabels } from './series-labels.js';
import { type ShownSession, shownSession } from './session-text.js';

/** Scores are sums of 32-bit numbers; what differs by less is equal to the picker's eye. */
const SAME_SCORE = 1e-6;

/** Signal that a scorer reads, with its value. */
export interface ShownSignal {
  readonly name: string;
  /** Null = unknown. */
  readonly value: number | null;
  /** What the engine reported last, where the value was worked out from it; null = unknown. */
  readonly scraped?: number | null;
}

/** A scorer's part in the score of one endpoint. */
export interface ShownScore {
  readonly scorer: string;
  readonly weight: number;
  /** Null = the operation is unknown to this version. */
  readonly signal: ShownSignal | null;
  /** From 0 to 1, before the weight; null = the scorer did not run. */
  readonly score: number | null;
}

/** One endpoint as a decision saw it, before its charge. */
export interface ShownEndpoint {
  readonly endpoint: string;
  /** Position among the picks from 1; null = not picked. */
  readonly rank: number | null;
  /** Filter that removed it, or another reason; null = candidate. */
  readonly removedBy: string | null;
  readonly matchedTokens: number;
  /** Tokens that it held at each place; null = all of them on the GPU. */
  readonly heldTokens: PlaceCounts | null;
  readonly inflight: number;
  /**
   * Requests waiting in the engine: as scraped last, and as predicted for the decision, which scorers and filters read.
   */
  readonly waiting: number | null;
  readonly predictedWaiting: number | null;
  /** Requests that its engine refused of late; they count as waiting. */
  readonly refused: number;
  readonly kvUsage: number | null;
  readonly signalAgeMs: number | null;
  /** Bounds of the capacity gate; null = flow control is off. */
  readonly gate: NonNullable<LoggedEndpoint['gate']> | null;
  /** Room on it in words; null = the decision has a pick. */
  readonly room: string | null;
  readonly scores: readonly ShownScore[];
  /** Weighted sum; null = the scorers did not run. */
  readonly score: number | null;
}

/** One decision about a request. */
export interface ShownDecision {
  /** `thread.number`, which also finds the request. */
  readonly id: string;
  readonly time: string;
  readonly profile: string;
  readonly status: DecisionRecord['status'];
  readonly endpoint: string | null;
  /** Reason for which the request has no endpoint; null = it has one. */
  readonly why: string | null;
  readonly candidates: number;
  /** Endpoints without room. */
  readonly closed: number;
  readonly score: number;
  /** Tokens of the prompt that the pick held, weighed by their places. */
  readonly matchedTokens: number;
  /** Tokens that the pick held at each place; null = all of them on the GPU. */
  readonly heldTokens: PlaceCounts | null;
  readonly promptTokens: number;
  readonly chargedTokens: number;
  readonly waitedMs: number;
  /** Endpoint that held more of the prompt, and why it was not picked; null = there was none. */
  readonly better: {
    readonly endpoint: string;
    readonly matchedTokens: number;
    readonly removedBy: string | null;
  } | null;
  readonly cacheLoss: CacheLoss | null;
  /** Null = the prompt was no session's turn, or sessions are not counted. */
  readonly session: ShownSession | null;
  /** Null = only the line above was kept. */
  readonly endpoints: readonly ShownEndpoint[] | null;
  /** Endpoints of the pool that `endpoints` leaves out. */
  readonly omittedEndpoints: number;
  /** Pick of the candidate configuration; null = it did not decide this request. */
  readonly shadow: {
    /** Null = no endpoint; its cost is null then. */
    readonly endpoint: string | null;
    /** Predicted costs of the shadow program's pick and of the actual pick, in targets. */
    readonly cost: number | null;
    readonly pickCost: number;
  } | null;
  /** Null = columns were not kept, or nothing was picked. */
  readonly tieBreak: TieBreak | null;
}

/** The result of a request, open or ended. */
export interface ShownEnd {
  readonly end: DecisionEnd;
  /** Status of a rejection; null = it was no rejection. */
  readonly httpStatus: number | null;
  /** The bound that rejected it; null = unknown. */
  readonly refusal: ShownRefusal | null;
  readonly firstTokenMs: number | null;
  readonly durationMs: number;
  readonly outputTokens: number | null;
  /** Whether the output tokens are counted from the chunks of a stream, because the engine told no usage. */
  readonly outputEstimated: boolean;
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
}

/** Everything that is known of one request. Nothing of its prompt but sizes. */
export interface RequestStory extends Partial<RequestLabels> {
  readonly requestId: string | null;
  readonly priority: number;
  /** Null = its answer has not ended. */
  readonly end: ShownEnd | null;
  readonly decisions: readonly ShownDecision[];
}

export interface StorySources {
  readonly log: DecisionLog;
  readonly labels: SeriesLabels;
  /** Name of the endpoint that a slot had in a generation. */
  readonly endpointOf: (slot: number, generation: number | undefined) => string;
  readonly profiles: () => readonly {
    readonly name: string;
    readonly operations: readonly ConfiguredOperation[];
  }[];
  readonly room: () => RoomJudge;
  /** Wall clock of a time of the pool clock, in milliseconds. */
  readonly wallMs: (poolMs: number) => number;
}

/** An operation of a profile with its configuration. */
interface ConfiguredOperation {
  readonly code: OperationName;
  readonly name: string;
  readonly parameters: readonly number[];
}

/** Tells what is known of requests from the decision log. */
export class RequestStories {
  readonly #sources: StorySources;

  constructor(sources: StorySources) {
    this.#sources = sources;
  }

  /**
   * The request with this id; of several, all their decisions.
   * @param id value of `x-request-id`, or `thread.number` of a decision
   * @returns undefined when the log has no such request any more
   */
  tell(id: string): RequestStory | undefined {
    const { log } = this.#sources;
    const found = log.find(id);
    const records = found.length > 0 ? found : this.#byNumber(id);
    return records.length === 0 ? undefined : this.#story(records);
  }

  /** Decisions by their numbers on a thread, as far as they are still in the log. */
  decisions(thread: number, first: number, count: number): ShownDecision[] {
    const numbers = Array.from({ length: count }, (_, i) => (first + i) >>> 0);
    const records = numbers.map((number) => this.#sources.log.at(thread, number));
    return records.filter((record) => record !== undefined).map((record) => this.#decision(record, undefined));
  }

  /** Scores of a decision; undefined when its columns are not kept. */
  scores(record: DecisionRecord): CandidateScores | undefined {
    const columns = this.#sources.log.columns(record);
    if (columns === undefined || record.status === 'undecided') return undefined;
    const scorers = columns.scorers.map((at) => ({
      name: this.#operationName(record, at, columns),
      weight: columns.operations[at]!.weight,
    }));
    const candidates = columns.endpoints.filter(({ removed }) => removed === undefined);
    return { scorers, candidates: candidates.map(({ rank, scores }) => ({ picked: rank === 1, scores })) };
  }

  #byNumber(id: string): DecisionRecord[] {
    const [, thread, number] = /^(\d{1,4})\.(\d{1,10})$/.exec(id) ?? [];
    const record = thread === undefined ? undefined : this.#sources.log.at(Number(thread), Number(number));
    if (record === undefined) return [];
    return record.requestId === undefined ? [record] : this.#sources.log.find(record.requestId);
  }

  #story(records: readonly DecisionRecord[]): RequestStory {
    const last = records.at(-1)!;
    const ended = records.findLast(({ end }) => end !== undefined && end !== 'abandoned') ?? last;
    return {
      requestId: last.requestId ?? null,
      ...this.#sources.labels.of(last.thread, last.series),
      priority: last.priority,
      end: endOf(ended, shownRefusal(ended, this.#sources.room().detector)),
      // A request that load refused without a decision has endpoints to show all the same.
      decisions: records
        .filter(({ status, columns }) => status !== 'undecided' || columns !== 0)
        .map((record, i, all) => this.#decision(record, all[i + 1])),
    };
  }

  /** @param next the next decision about the request; undefined = there is none, or it is not looked at */
  #decision(record: DecisionRecord, next: DecisionRecord | undefined): ShownDecision {
    const { log, wallMs, profiles } = this.#sources;
    const columns = log.columns(record);
    const endpoints = columns && this.#endpoints(record, columns);
    const { best, slot, generation } = record;
    return {
      id: `${record.thread}.${record.number}`,
      time: new Date(wallMs(record.timeMs)).toISOString(),
      profile: profiles()[record.profile]?.name ?? String(record.profile),
      status: record.status,
      endpoint: slot === undefined ? null : this.#sources.endpointOf(slot, generation),
      why: whyNoPick(record),
      candidates: record.candidates,
      closed: record.closed,
      score: record.score,
      matchedTokens: tokensOf(record, record.matchedBlocks),
      heldTokens: heldTokensOf(record, record.places),
      promptTokens: record.promptTokens,
      chargedTokens: record.uncachedTokens,
      waitedMs: waitOf(record),
      better:
        best === undefined
          ? null
          : {
              endpoint: this.#sources.endpointOf(best.slot, undefined),
              matchedTokens: tokensOf(record, best.matchedBlocks),
              removedBy: this.#removalName(record, best.removed, columns),
            },
      cacheLoss: cacheLossOfRecord(record) ?? null,
      session: shownSession(record.session, {
        columns,
        endpointOf: (home) => this.#sources.endpointOf(home, undefined),
        held: record.status === 'waiting',
        heldMs: next?.waitedMs ?? (waitOf(record) || undefined),
      }),
      endpoints: endpoints ?? null,
      omittedEndpoints: columns?.omitted ?? 0,
      shadow: this.#shadow(record),
      tieBreak: (columns && tieBreakOf(columns.endpoints)) ?? null,
    };
  }

  #shadow({ shadow }: DecisionRecord): ShownDecision['shadow'] {
    if (shadow === undefined) return null;
    const { slot, cost, pickCost } = shadow;
    if (slot === undefined) return { endpoint: null, cost: null, pickCost };
    return { endpoint: this.#sources.endpointOf(slot, undefined), cost, pickCost };
  }

  #endpoints(record: DecisionRecord, columns: DecisionColumns): ShownEndpoint[] {
    const order = (endpoint: LoggedEndpoint) => [endpoint.rank ?? 1e6, endpoint.removed === undefined ? 0 : 1] as const;
    const sorted = [...columns.endpoints].sort((a, b) => {
      const [rankA, outA] = order(a);
      const [rankB, outB] = order(b);
      return rankA - rankB || outA - outB || (b.score ?? 0) - (a.score ?? 0) || a.slot - b.slot;
    });
    return sorted.map((endpoint) => ({
      endpoint: this.#sources.endpointOf(endpoint.slot, endpoint.generation),
      rank: endpoint.rank ?? null,
      removedBy: this.#removedBy(record, endpoint, columns),
      matchedTokens: tokensOf(record, endpoint.matchedBlocks),
      heldTokens: heldTokensOf(record, endpoint.places),
      inflight: endpoint.inflight,
      waiting: endpoint.waiting ?? null,
      predictedWaiting: endpoint.predictedWaiting ?? null,
      refused: endpoint.refused,
      kvUsage: endpoint.kvUsage ?? null,
      signalAgeMs: endpoint.signalAgeMs ?? null,
      gate: endpoint.gate ?? null,
      room: record.slot === undefined ? roomText(endpoint, columns.ceiling, this.#sources.room()) : null,
      scores: endpoint.removed === undefined ? this.#scores(record, endpoint, columns) : [],
      score: endpoint.removed === undefined ? (endpoint.score ?? null) : null,
    }));
  }

  #scores(record: DecisionRecord, endpoint: LoggedEndpoint, columns: DecisionColumns): ShownScore[] {
    return columns.scorers.map((at, i) => ({
      scorer: this.#operationName(record, at, columns),
      weight: columns.operations[at]!.weight,
      signal: this.#signal(record, endpoint, columns, at, endpoint.scores[i]),
      score: endpoint.scores[i] ?? null,
    }));
  }

  /**
   * The figure that a scorer goes by most of all, and its value; null = an operation of a later version of the core.
   */
  #signal(
    record: DecisionRecord,
    endpoint: LoggedEndpoint,
    columns: DecisionColumns,
    at: number,
    score: number | undefined,
  ): ShownSignal | null {
    const code = columns.operations[at]!.code;
    if (code === undefined || !isScorer(code)) return null;
    const { name, input, scraped } = signalOf(code, this.#configured(record, at, columns)?.parameters ?? []);
    const cachedTokens = tokensOf(record, endpoint.matchedBlocks);
    const inputs: ScorerInputs = { ...endpoint, score, cachedTokens, promptTokens: record.promptTokens };
    const value = inputs[input] ?? null;
    return scraped === undefined ? { name, value } : { name, value, scraped: inputs[scraped] ?? null };
  }

  #removedBy(record: DecisionRecord, endpoint: LoggedEndpoint, columns: DecisionColumns): string | null {
    if (endpoint.removed === 'not-admitted') {
      if (endpoint.draining) return 'draining';
      if (endpoint.dead) return 'dead: it takes no connections';
      if (endpoint.doubted) return 'in doubt: a request to it got no answer';
      if (endpoint.silent) return 'silent';
      return endpoint.ejected ? 'ejected' : 'not admitted';
    }
    return this.#removalName(record, endpoint.removed, columns);
  }

  #removalName(
    record: DecisionRecord,
    removal: Removal | undefined,
    columns: DecisionColumns | undefined,
  ): string | null {
    if (removal === undefined) return null;
    if (removal === 'gate') return 'no room';
    if (removal === 'behind') return 'others waited before it';
    if (removal === 'aside') return 'it waited for the endpoint that holds its prefix';
    if (removal === 'session') return 'no room beside the sessions there, or its own session is elsewhere';
    if (removal === 'outside-subset') return 'subset hint of the proxy';
    if (removal === 'not-admitted') return 'draining, ejected, dead or silent';
    return this.#operationName(record, removal, columns);
  }

  #operationName(record: DecisionRecord, at: number, columns: DecisionColumns | undefined): string {
    const configured = this.#configured(record, at, columns);
    if (configured !== undefined) return configured.name;
    const code = columns?.operations[at]?.code;
    return code === undefined ? `operation ${at}` : plainName(code);
  }

  /**
   * The configured operation that the one at `at` is. A variant of a program keeps the order of the operations of each
   * kind.
   */
  #configured(
    { profile }: DecisionRecord,
    at: number,
    columns: DecisionColumns | undefined,
  ): ConfiguredOperation | undefined {
    const configured = this.#sources.profiles()[profile]?.operations ?? [];
    const code = columns?.operations[at]?.code ?? configured[at]?.code;
    const before = (columns?.operations ?? []).slice(0, at).filter((operation) => operation.code === code).length;
    const same = configured.filter((operation) => operation.code === code);
    return same[before] ?? (configured[at]?.code === code ? configured[at] : undefined);
  }
}

/** An operation that no plugin is configured for, such as the learned cost. */
function plainName(code: OperationName): string {
  return code
    .replace(/^OP_(SCORE_|FILTER_|PICK_)?/, '')
    .toLowerCase()
    .replaceAll('_', '-');
}

function tokensOf({ blockTokens, promptTokens }: DecisionRecord, blocks: number): number {
  return Math.min(blocks * blockTokens, promptTokens);
}

/** Tokens at each place, of blocks. */
function heldTokensOf({ blockTokens }: DecisionRecord, places: PlaceCounts | undefined): PlaceCounts | null {
  if (places === undefined) return null;
  const { gpu, host, disk, remote } = places;
  return {
    gpu: gpu * blockTokens,
    host: host * blockTokens,
    disk: disk * blockTokens,
    remote: remote * blockTokens,
  };
}

function endOf(record: DecisionRecord, refusal: ShownRefusal | null): ShownEnd | null {
  const { end, httpStatus, firstOutputMs, durationMs, ...tokens } = record;
  if (end === undefined) return null;
  return {
    end,
    httpStatus: end === 'rejected' ? httpStatus : null,
    refusal: end === 'rejected' ? refusal : null,
    firstTokenMs: firstOutputMs ?? null,
    durationMs,
    outputTokens: tokens.outputTokens ?? null,
    outputEstimated: tokens.outputTokens !== undefined && tokens.enginePromptTokens === undefined,
    promptTokens: tokens.enginePromptTokens ?? null,
    cachedTokens: tokens.cachedTokens ?? null,
  };
}

/** Rule by which the pick was chosen among candidates with the same score. */
export interface TieBreak {
  /** Candidates with the highest score. */
  readonly tied: number;
  /** Rule that decided between them; `score` = there was one candidate only. */
  readonly by: 'score' | 'known signals' | 'requests in flight' | 'lot';
}

/** The rule of the pickers: known signals first, then the fewest requests in flight, then by lot. */
function tieBreakOf(endpoints: readonly LoggedEndpoint[]): TieBreak | undefined {
  const pick = endpoints.find(({ rank }) => rank === 1);
  if (pick?.score === undefined) return undefined;
  const { score } = pick;
  const tied = endpoints.filter(
    (endpoint) => endpoint.removed === undefined && Math.abs((endpoint.score ?? Number.NaN) - score) < SAME_SCORE,
  );
  if (tied.length <= 1) return { tied: 1, by: 'score' };
  const known = tied.filter((endpoint) => isKnown(endpoint) === isKnown(pick));
  if (known.length === 1) return { tied: tied.length, by: 'known signals' };
  const fewest = known.filter(({ inflight }) => inflight === pick.inflight);
  return { tied: tied.length, by: fewest.length === 1 ? 'requests in flight' : 'lot' };
}

function isKnown({ waiting, kvUsage }: LoggedEndpoint): boolean {
  return waiting !== undefined || kvUsage !== undefined;
}
