import { z } from 'zod';
import type { Usage } from '../../core/types.js';
import type { HookRequest } from '../hooks/hook-request.js';
import type { HookContext, HookPlugin } from '../hooks/hooks.js';
import { openThread } from '../open-thread.js';
import { definePlugin } from '../plugin.js';
import { SessionStates, type SessionTally } from '../session/session-states.js';

/** Attribute under which agent-identity leaves the session of a request. */
const IDENTITY = 'agent-identity';
/** Attribute under which plugins find a SessionState. */
export const SESSION_STATE = 'session-state';

const parameters = () =>
  z.strictObject({
    evictionTtlSeconds: z
      .number()
      .min(0)
      .default(3600)
      .describe('Time for which a session without requests is remembered; 0 = until room is needed.'),
    evictionSweepSeconds: z
      .number()
      .positive()
      .default(300)
      .describe('Time between two removals of forgotten sessions.'),
    sessionIdentityProducer: z
      .string()
      .optional()
      .describe('Accepted, without effect: sessions are told apart by agent-identity.'),
  });

/** History of a session, as it was before the present request. */
export interface SessionState {
  /** Requests that were placed. */
  readonly turnsTaken: number;
  /** Milliseconds since the first request. */
  readonly durationMs: number;
  /** Time of the request before, on the clock of HookContext.now; that of this one for a new session. */
  readonly lastSeenAt: number;
  /** Requests that were placed and are not over. */
  readonly inFlightRequests: number;
  /** Requests whose answer ended by itself. */
  readonly completedRequests: number;
  /** Tokens of these answers, as far as they were reported. */
  readonly totalInputTokens: number;
  readonly totalOutputTokens: number;
}

/** What an instance tells those of the other shards. */
type Told = { readonly session: string; readonly tally: SessionTally };

class SessionStateProducer implements HookPlugin {
  readonly #states: SessionStates;
  readonly #context: HookContext;
  readonly #send: (message: Told) => void;

  constructor(given: z.output<ReturnType<typeof parameters>>, context: HookContext) {
    this.#context = context;
    this.#states = new SessionStates({
      ttlMs: given.evictionTtlSeconds * 1_000 || Number.POSITIVE_INFINITY,
      sweepMs: given.evictionSweepSeconds * 1_000,
    });
    this.#send = context.share((message) => {
      const { session, tally } = message as Told;
      this.#states.add(session, tally, context.now());
    });
  }

  produce(request: HookRequest): void {
    const session = sessionOf(request);
    if (session === undefined) return;
    const now = this.#context.now();
    const known = this.#states.find(session, now);
    const { turns, inFlight, completed, inputTokens, outputTokens } = known?.tally ?? NOTHING;
    const state: SessionState = {
      turnsTaken: turns,
      durationMs: known === undefined ? 0 : now - known.firstAt,
      lastSeenAt: known?.lastAt ?? now,
      inFlightRequests: inFlight,
      completedRequests: completed,
      totalInputTokens: inputTokens,
      totalOutputTokens: outputTokens,
    };
    request.attributes.set(SESSION_STATE, state);
    this.#tell(session, NOTHING);
  }

  placed(request: HookRequest): void {
    const session = sessionOf(request);
    if (session !== undefined) this.#tell(session, { ...NOTHING, turns: 1, inFlight: 1 });
  }

  report(request: HookRequest, { promptTokens, completionTokens }: Readonly<Usage>): void {
    const session = sessionOf(request);
    if (session === undefined) return;
    const inputTokens = Math.max(promptTokens, 0);
    const outputTokens = Math.max(completionTokens, 0);
    this.#tell(session, { ...NOTHING, completed: 1, inputTokens, outputTokens });
  }

  ended(request: HookRequest): void {
    const session = sessionOf(request);
    if (session !== undefined) this.#tell(session, { ...NOTHING, inFlight: -1 });
  }

  #tell(session: string, tally: SessionTally): void {
    this.#states.add(session, tally, this.#context.now());
    this.#send({ session, tally });
  }
}

const NOTHING: SessionTally = { turns: 0, inFlight: 0, completed: 0, inputTokens: 0, outputTokens: 0 };

function sessionOf({ attributes }: HookRequest): string | undefined {
  return attributes.get(IDENTITY) as string | undefined;
}

export const sessionStateProducer = definePlugin({
  type: 'session-state-producer',
  kinds: ['producer'],
  stability: 'Alpha',
  doc:
    'Counts the turns, tokens and requests in flight of each session that agent-identity names, and leaves them as ' +
    'the attribute session-state for other plugins. All shards of a picker count together, other replicas do not. ' +
    'Open in llm-d-router (#2531): it may change.',
  parameters,
  consumes: () => [{ key: 'agent-identity' }],
  advise: ({ sessionIdentityProducer }) => [
    openThread(2531),
    ...(sessionIdentityProducer ? ['sessionIdentityProducer has no effect: sessions are those of agent-identity'] : []),
  ],
  host: (given, context) => new SessionStateProducer(given, context),
});
