import type { Admission } from '../admission/shedding.js';
import type { Bounds } from '../contract/bounds.js';
import type { CurrentSettings } from '../contract/current-settings.js';
import type { DecideSettings } from '../contract/decide-settings.js';
import type { ObserveSettings } from '../contract/observe-settings.js';
import type { RetentionHint } from '../contract/queue-settings.js';
import type { DecisionTrail } from '../core/decision-trail.js';
import type { Evictable, EvictableRequests } from '../flow-control/evictable-requests.js';
import type { WaitingLine } from '../flow-control/waiting-line.js';
import type { BodyScanner } from '../request/body-scanner.js';
import type { Dialects } from '../request/dialects.js';
import type { RequestRules } from '../request/rules.js';
import type { TokenSource } from '../request/tokens/token-source.js';
import type { AnswerBodies } from '../response/answer-bodies.js';
import type { RequestRecorder } from '../response/recorder.js';
import type { ResponseScanner } from '../response/response-scanner.js';
import type { PacedReport } from '../runtime/paced-report.js';
import type { GatedScheduler, ScheduleInput } from '../scheduling/decision.js';
import type { HookPlugins } from '../scheduling/hooks/hook-plugins.js';
import type { EndpointPredictions } from '../scheduling/latency-outlook.js';
import type { TokenRatios } from '../scheduling/token-ratios.js';
import type { HeldBytes } from './byte-budget.js';
import type { DestinationTemplates } from './codec/destination.js';
import type { ColumnRequests } from './kept-columns.js';
import type { PoolChoice } from './pool-choice.js';
import type { UnreadAnswers } from './processing-modes.js';
import type { RequestTracer } from './tracing/request-tracer.js';
import type { ProcessStream } from './transport.js';
import type { TurnBudget } from './turn-budget.js';

/** Streams of one pool of a shard. */
export interface PoolUse {
  streams: number;
  /** Called when the last stream has ended; undefined = the pool stays. */
  idle: (() => void) | undefined;
}

/** Services of a shard for the streams of one pool. */
export interface StreamContext {
  readonly services: StreamServices;
  readonly load: SharedLoad;
  readonly turnBudget: TurnBudget;
  readonly templates: DestinationTemplates;
  /** Chooses the pool; undefined = it is chosen, or there is one only. */
  readonly pools?: PoolChoice<StreamContext> | undefined;
  /** Count of the pool's streams; undefined = the pool stays as long as the shard. */
  readonly use?: PoolUse | undefined;
}

/** One HTTP exchange, for its request and its response: the stream for their answers, and the ways in which it ends. */
export interface Exchange extends Evictable {
  readonly context: StreamContext;
  readonly stream: ProcessStream;
  /** Time at which the first byte of the stream came, by the services' clock. */
  readonly openedAt: number;
  /** Mode in which the proxy sends bodies of answers: a BodyMode, or another number = they are sent. */
  readonly responseBodyMode: number;
  /** Whether the proxy has half-closed: nothing more will come. */
  readonly isHalfClosed: boolean;
  /** Goes on as an exchange of another pool. */
  enter(context: StreamContext): void;
  /** Sets the exchange's share of the shard's held bytes. @returns false when the shard holds too much */
  hold(bytes: number): boolean;
  /** Ends the stream. Everything that it holds is released before the proxy is told of the end. */
  finish(): void;
  /** Ends the stream, since the proxy broke the protocol. */
  fail(why: string): void;
  /** Reports an unexpected exception: it ends this stream and no other. */
  broken(error: unknown): void;
  /** Answers with a 503 because a bound of the picker is reached. */
  turnAway(why: string): void;
}

/** Counts of all streams of a shard. */
export interface SharedLoad {
  openStreams: number;
  /**
   * Request bodies until their requests are answered, messages on their way in, replies that the proxy does not take.
   */
  readonly held: HeldBytes;
  /** Streams over the bound that have sent nothing so far, and that could therefore not be answered. */
  silentStreams: number;
}

/** Memory and slots that the streams of a shard hold. */
export interface StreamLoad extends Readonly<Omit<SharedLoad, 'held'>> {
  /** Bytes that are held. */
  readonly bufferedBytes: number;
  /** Streams that wait for their turn. */
  readonly waiting: number;
}

/** Receives unexpected exceptions of a stream. */
export interface StreamLog {
  error(details: object, message: string): void;
  warn(details: object, message: string): void;
}

/** Predictions of servers for a request. */
export interface LatencyAnswer {
  /** Outcome, for the metrics. */
  readonly outcome: string;
  readonly predictions: EndpointPredictions | undefined;
}

/** Knows more about the latency of endpoints than this thread can work out. */
export interface LatencySource {
  /** Never rejects. @param signal the request went away */
  predict(input: ScheduleInput, signal: AbortSignal): Promise<LatencyAnswer>;
}

/** The settings of streams that a reload of the configuration can change. */
export interface StreamSettings {
  readonly dialects: Dialects;
  /** Whether running requests may be ended for others of a higher band. */
  readonly evicts: boolean;
  /** Whether requests may ask for their endpoint alone. */
  readonly reserves: boolean;
  /** Whether decisions depend on bodies of answers; metrics do not count. */
  readonly readsAnswers: boolean;
}

/** State that the streams of one shard share. */
export interface StreamServices {
  readonly scanner: BodyScanner;
  readonly responses: ResponseScanner;
  readonly scheduler: GatedScheduler;
  /** Queues in which requests wait for an endpoint with room; undefined = flow control is off and nothing waits. */
  readonly line?: WaitingLine | undefined;
  /** Running requests that may be ended for others of a higher band, while `evicts` is set; undefined = none. */
  readonly evictable?: EvictableRequests | undefined;
  /** Log of the decisions; undefined = none is kept. */
  readonly trail?: DecisionTrail | undefined;
  /** Requests whose decisions keep their columns on request; undefined = there are none. */
  readonly columns?: ColumnRequests | undefined;
  /** Chooses the requests that are traced; undefined = none is. */
  readonly tracer?: RequestTracer | undefined;
  /** Hook plugins; undefined when the configuration has none. */
  readonly plugins?: HookPlugins | undefined;
  /** Source of the tokens of prompts; undefined = they are estimated. */
  readonly tokens?: TokenSource | undefined;
  /** Asks prediction servers about a request; undefined = there are none. */
  readonly latency?: LatencySource | undefined;
  readonly settings: CurrentSettings<StreamSettings>;
  readonly rules: RequestRules;
  readonly admission: Admission;
  readonly recorder: RequestRecorder;
  /** Tokens that models have in a text, as engines told; absent = nothing learns them. */
  readonly ratios?: TokenRatios | undefined;
  /** Remembers whether bodies of answers come. */
  readonly answerBodies?: AnswerBodies | undefined;
  readonly bounds: Bounds;
  readonly decide: DecideSettings;
  readonly observe: ObserveSettings;
  /** Prompt bytes of one hashed block. */
  readonly blockBytes: () => number;
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** Time of that clock's last reading: a transport reads it before it hands messages over. */
  readonly recent: () => number;
  /** Counts answers whose bodies are sent although no decision depends on them. */
  readonly unreadAnswers: UnreadAnswers;
  /** Logs that a proxy sends bodies in a mode of no use. */
  readonly unusableModes: PacedReport<string>;
  /** Logs that clients have written the member of a retention hint themselves. */
  readonly leftOutHints: PacedReport<RetentionHint['engine']>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: StreamLog;
}
