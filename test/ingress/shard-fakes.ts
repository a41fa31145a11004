import type { RequestResult } from '../../dist/src/core/decision-data.js';
import type { Usage } from '../../dist/src/core/types.js';
import { PromptKind, type RequestScanResult, type ScanRefusal } from '../../dist/src/core/types.js';
import type { StreamServices } from '../../dist/src/ingress/exchange.js';
import { createStreamOpener, type StreamOpener } from '../../dist/src/ingress/opener.js';
import { UnreadAnswers, unusableModes } from '../../dist/src/ingress/processing-modes.js';
import type { ProcessHandler, ProcessStream } from '../../dist/src/ingress/transport.js';
import type { BodyScanner } from '../../dist/src/request/body-scanner.js';
import { createDialects, DEFAULT_PARSERS, type ParserName } from '../../dist/src/request/dialects.js';
import { leftOutHints } from '../../dist/src/request/engine-asks.js';
import { RequestRules } from '../../dist/src/request/rules.js';
import type { RequestRecorder, RequestSamples } from '../../dist/src/response/recorder.js';
import type { ResponseScanner, ResponseScanOptions } from '../../dist/src/response/response-scanner.js';
import type {
  AnswerMeasures,
  Charge,
  PickedEndpoint,
  Placement,
  Rejection,
  ScheduleInput,
  Waiting,
} from '../../dist/src/scheduling/decision.js';
import { BOUNDS, DECIDE, OBSERVE } from '../serve/default-sections.ts';
import { decodeReply, type ProxyReply } from './envoy-messages.ts';

const PROMPT_FIELD: Readonly<Partial<Record<PromptKind, string>>> = {
  [PromptKind.completions]: 'prompt',
  [PromptKind.chat]: 'messages',
  [PromptKind.responses]: 'input',
  [PromptKind.embeddings]: 'input',
  [PromptKind.conversations]: 'items',
  [PromptKind.images]: 'prompt',
  [PromptKind.messages]: 'messages',
};

/** Scans with JSON.parse once the body has ended. Finds spans of top-level members without nested twins. */
export class PlainScanner implements BodyScanner {
  readonly open_ = new Map<
    number,
    { kind: PromptKind; chunks: Buffer[]; text: string; refusal: ScanRefusal | undefined }
  >();
  capacity = 1_000;
  #next = 0;

  open(kind: PromptKind): number {
    if (this.open_.size >= this.capacity) return -1;
    this.open_.set(this.#next, { kind, chunks: [], text: '', refusal: undefined });
    return this.#next++;
  }

  feed(id: number, chunk: Uint8Array): boolean {
    const scan = this.open_.get(id)!;
    scan.chunks.push(Buffer.from(chunk));
    return true;
  }

  finish(id: number): boolean {
    const scan = this.open_.get(id)!;
    scan.text = Buffer.concat(scan.chunks).toString();
    try {
      JSON.parse(scan.text);
      return true;
    } catch {
      scan.refusal = { position: scan.text.length, reason: 'unexpected end' };
      return false;
    }
  }

  result(id: number): RequestScanResult {
    const scan = this.open_.get(id)!;
    const body = JSON.parse(scan.text) as unknown;
    const isObject = typeof body === 'object' && body !== null && !Array.isArray(body);
    const members = (isObject ? body : {}) as Record<string, unknown>;
    const model = typeof members.model === 'string' ? members.model : undefined;
    const field = PROMPT_FIELD[scan.kind]!;
    const modelText = JSON.stringify(members.model);
    const start = modelText === undefined ? -1 : scan.text.indexOf(modelText, scan.text.indexOf('"model"') + 7);
    // The value begins behind its key; where it ends is not looked for.
    const promptStart = scan.text.indexOf(`"${field}"`) + field.length + 3;
    return {
      model,
      modelRange: start < 0 ? undefined : byteSpan(scan.text, start, start + modelText.length),
      stream: members.stream === true,
      maxOutputTokens: typeof members.max_tokens === 'number' ? members.max_tokens : undefined,
      promptRange: members[field] === undefined ? undefined : { start: promptStart, end: scan.text.length },
      promptBytes: JSON.stringify(members[field] ?? '').length,
      toolsRange: undefined,
      templateRange: undefined,
      cacheSalt: undefined,
      media: [],
      hasMedia: false,
      isObject,
      flaw: members[field] === undefined ? 'missing' : undefined,
    };
  }

  refusal(id: number): ScanRefusal | undefined {
    return this.open_.get(id)!.refusal;
  }

  close(id: number): void {
    if (!this.open_.delete(id)) throw new Error('a scan was closed twice');
  }
}

function byteSpan(text: string, start: number, end: number): { start: number; end: number } {
  return { start: Buffer.byteLength(text.slice(0, start)), end: Buffer.byteLength(text.slice(0, end)) };
}

/** Renames within a chunk, counts `data:` lines, reads usage from the whole body. */
export class PlainResponseScanner implements ResponseScanner {
  readonly open_ = new Map<number, { options: ResponseScanOptions; text: string }>();
  readonly opened: ResponseScanOptions[] = [];
  capacity = 1_000;
  #next = 0;

  open(options: ResponseScanOptions): number {
    if (this.open_.size >= this.capacity) return -1;
    this.opened.push(options);
    this.open_.set(this.#next, { options, text: '' });
    return this.#next++;
  }

  feed(id: number, chunk: Uint8Array, _end: boolean): Uint8Array {
    const scan = this.open_.get(id)!;
    const text = Buffer.from(chunk).toString();
    scan.text += text;
    const { renameFrom, renameTo } = scan.options;
    if (renameFrom === undefined) return chunk;
    return Buffer.from(text.replaceAll(`"model":"${renameFrom}"`, `"model":"${renameTo}"`));
  }

  usage(id: number): Usage {
    const { text } = this.open_.get(id)!;
    const number = (name: string): number => Number(new RegExp(`"${name}":(\\d+)`).exec(text)?.[1] ?? -1);
    return {
      promptTokens: number('prompt_tokens'),
      completionTokens: number('(?:completion|output)_tokens'),
      totalTokens: number('total_tokens'),
      cachedTokens: number('cached_tokens'),
    };
  }

  events(id: number): number {
    return this.open_.get(id)!.text.match(/^data: ?(?!\[DONE\])/gm)?.length ?? 0;
  }

  close(id: number): void {
    if (!this.open_.delete(id)) throw new Error('a response scan was closed twice');
  }
}

/** Writes down every call as `[name, …arguments]`. */
export class RecordedCalls implements RequestRecorder {
  readonly calls: unknown[][] = [];
  readonly labels: RequestSamples[] = [];

  series(labels: RequestSamples): number {
    this.labels.push(labels);
    return this.labels.length - 1;
  }
  routed(...rest: unknown[]): void {
    this.calls.push(['routed', ...rest]);
  }
  failed(...rest: unknown[]): void {
    this.calls.push(['failed', ...rest]);
  }
  running(...rest: unknown[]): void {
    this.calls.push(['running', ...rest]);
  }
  tokens(...rest: unknown[]): void {
    this.calls.push(['tokens', ...rest]);
  }
  estimatedTokens(...rest: unknown[]): void {
    this.calls.push(['estimatedTokens', ...rest]);
  }
  firstToken(...rest: unknown[]): void {
    this.calls.push(['firstToken', ...rest]);
  }
  interTokenLatency(...rest: unknown[]): void {
    this.calls.push(['interTokenLatency', ...rest]);
  }
  responseEnded(...rest: unknown[]): void {
    this.calls.push(['responseEnded', ...rest]);
  }
  predicted(...rest: unknown[]): void {
    this.calls.push(['predicted', ...rest]);
  }
  predictionAsked(...rest: unknown[]): void {
    this.calls.push(['predictionAsked', ...rest]);
  }
  scheduled(...rest: unknown[]): void {
    this.calls.push(['scheduled', ...rest]);
  }
  prefix(...rest: unknown[]): void {
    this.calls.push(['prefix', ...rest]);
  }
  processing(...rest: unknown[]): void {
    this.calls.push(['processing', ...rest]);
  }
  estimateCompared(...rest: unknown[]): void {
    this.calls.push(['estimateCompared', ...rest]);
  }
  tokensCounted(...rest: unknown[]): void {
    this.calls.push(['tokensCounted', ...rest]);
  }
  tokenised(...rest: unknown[]): void {
    this.calls.push(['tokenised', ...rest]);
  }
  rewritten(...rest: unknown[]): void {
    this.calls.push(['rewritten', ...rest]);
  }
  streamOpened(): void {
    this.calls.push(['streamOpened']);
  }
  streamClosed(...rest: unknown[]): void {
    this.calls.push(['streamClosed', ...rest]);
  }
  queued(series: number, by: 1 | -1, bodyBytes: number): void {
    this.calls.push(['queued', series, by, bodyBytes]);
  }

  leftWaiting(series: number): void {
    this.calls.push(['leftWaiting', series]);
  }

  passedQueue(series: number, outcome: string): void {
    this.calls.push(['passedQueue', series, outcome]);
  }

  queueLeft(series: number, outcome: string, seconds: number): void {
    this.calls.push(['queueLeft', series, outcome, seconds]);
  }

  overloaded(): void {
    this.calls.push(['overloaded']);
  }

  unreadAnswer(): void {
    this.calls.push(['unreadAnswer']);
  }
  retentionLeftOut(): void {
    this.calls.push(['retentionLeftOut']);
  }

  named(name: string): unknown[][] {
    return this.calls.filter((call) => call[0] === name);
  }
}

/** A charge as the contract has it: every call acts at most once. Counts what acted. */
export class CountedCharge implements Charge {
  prefills = 0;
  releases = 0;
  grown: number[] = [];
  outcomes: string[] = [];
  /** What `servedBy` was told: the server, and the picks. */
  servers: [string, readonly string[]][] = [];
  answers: AnswerMeasures[] = [];

  prefillDone(): void {
    this.prefills++;
  }
  grow(tokens: number): void {
    if (this.releases > 0) throw new Error('a released charge grew');
    this.grown.push(tokens);
  }
  answered(answer: AnswerMeasures): void {
    if (this.releases > 0) throw new Error('a released charge was answered');
    this.answers.push(answer);
  }
  release(): void {
    if (this.releases === 0) this.releases++;
  }
  outcome(result: RequestResult): void {
    if (this.outcomes.length === 0) this.outcomes.push(result);
  }
  servedBy(served: string, picks: readonly PickedEndpoint[], result: RequestResult): void {
    this.outcome(result);
    this.servers.push([served, picks.map(({ address }) => address)]);
  }
}

/** The proxy's end of one stream. */
export class ProxySide implements ProcessStream {
  readonly replies: ProxyReply[] = [];
  /** `open`, `ended`, or gRPC code and message of a failure. */
  ending: 'open' | 'ended' | { code: number; message: string } = 'open';
  readonly pendingBytes = 0;
  /** Bytes that its connection can hold more. */
  room = Number.POSITIVE_INFINITY;
  /** Called for each reply. */
  onReply: (() => void) | undefined;
  goesFirst = false;
  readonly arrivedAt: number;
  #handler: ProcessHandler | undefined;

  constructor(arrivedAt: number) {
    this.arrivedAt = arrivedAt;
  }

  attach(handler: ProcessHandler): void {
    this.#handler = handler;
  }
  send(reply: Uint8Array): void {
    this.replies.push(decodeReply(Buffer.from(reply)));
    this.onReply?.();
  }
  sendParts(head: Uint8Array, parts: readonly Uint8Array[]): void {
    this.send(Buffer.concat([head, ...parts]));
  }
  end(): void {
    if (this.ending === 'open') this.ending = 'ended';
  }
  fail(code: number, message: string): void {
    if (this.ending === 'open') this.ending = { code, message };
  }

  say(...messages: readonly Buffer[]): this {
    for (const message of messages) {
      // Between other bytes, and overwritten when the call is over: so do transports with their read buffers.
      const buffer = Buffer.concat([Buffer.alloc(3, 0xdd), message, Buffer.alloc(3, 0xdd)]);
      this.#handler!.message(buffer, 3, 3 + message.length);
      buffer.fill(0xdd);
    }
    return this;
  }
  halfClose(): this {
    this.#handler!.halfClosed();
    return this;
  }
  overflow(): this {
    this.#handler!.overflowed();
    return this;
  }
  stall(): this {
    this.#handler!.stalled();
    return this;
  }
  /** The stream is gone. */
  close(cancelled = false): this {
    this.#handler!.closed(cancelled);
    return this;
  }

  get kinds(): string[] {
    return this.replies.map((reply) => reply.kind);
  }
  body(kind: 'requestBody' | 'responseBody'): string {
    return Buffer.concat(this.replies.filter((reply) => reply.kind === kind).map((reply) => reply.body)).toString();
  }
  /** Status and text of the immediate response. */
  get rejection(): { status: number; text: string; headers: Readonly<Record<string, string>> } | undefined {
    const reply = this.replies.find((candidate) => candidate.kind === 'immediate');
    return reply === undefined
      ? undefined
      : { status: reply.status, text: reply.body.toString(), headers: reply.headers };
  }
}

export interface ShardSetup {
  readonly bounds?: Partial<StreamServices['bounds']>;
  readonly services?: Partial<StreamServices>;
  /** Absent = those of a configuration that names none. */
  readonly parsers?: readonly ParserName[];
  /** Decisions depend on bodies of answers; absent = they do. */
  readonly readsAnswers?: boolean;
  readonly reserves?: boolean;
  /** Answer of the scheduler; the default places on 10.0.0.1:8000. */
  readonly schedule?: (input: ScheduleInput) => Placement | Rejection | Waiting;
}

/** One shard's stream handling with every neighbour replaced. */
export class FakeShard {
  readonly scanner = new PlainScanner();
  readonly responses = new PlainResponseScanner();
  readonly recorder = new RecordedCalls();
  readonly rules = new RequestRules();
  readonly charges: CountedCharge[] = [];
  readonly decisions: ScheduleInput[] = [];
  readonly logged: unknown[] = [];
  readonly opener: StreamOpener;
  clock = 0;

  constructor(setup: ShardSetup = {}) {
    const schedule = setup.schedule ?? (() => this.place('10.0.0.1:8000'));
    this.opener = createStreamOpener({
      scanner: this.scanner,
      responses: this.responses,
      scheduler: {
        schedule: (input) => {
          this.decisions.push(input);
          return schedule(input);
        },
      },
      settings: {
        current: {
          dialects: createDialects(setup.parsers ?? DEFAULT_PARSERS),
          evicts: false,
          reserves: setup.reserves ?? false,
          readsAnswers: setup.readsAnswers ?? true,
        },
      },
      unreadAnswers: new UnreadAnswers(this.recorder, { warn: (details) => this.logged.push(details) }),
      unusableModes: unusableModes({ warn: (details) => this.logged.push(details) }),
      leftOutHints: leftOutHints({ warn: (details) => this.logged.push(details) }),
      rules: this.rules,
      admission: { admit: () => 'admitted' },
      recorder: this.recorder,
      bounds: {
        ...BOUNDS,
        maxRequestBodyBytes: 1_000_000,
        maxStreams: 100,
        maxBufferedBytes: 10_000_000,
        ...setup.bounds,
      },
      decide: DECIDE,
      observe: OBSERVE,
      blockBytes: () => 256,
      now: () => this.clock,
      recent: () => this.clock,
      random: () => 0.5,
      log: { error: (details) => this.logged.push(details), warn: (details) => this.logged.push(details) },
      ...setup.services,
    });
  }

  /** A placement on these addresses with a counted charge. */
  place(...addresses: readonly string[]): Placement {
    const charge = new CountedCharge();
    this.charges.push(charge);
    return {
      kind: 'placed',
      endpoints: addresses.map((address, slot) => ({
        slot,
        address,
        endpoint: { id: address, name: address, namespace: 'default', address, port: 8_000, labels: {} },
      })),
      picks: new Map(),
      charge,
      headers: new Map(),
      matchedBlocks: 2,
      totalBlocks: 3,
      promptTokens: 192,
      matchedTokens: 128,
      scores: undefined,
    };
  }

  open(): ProxySide {
    const side = new ProxySide(this.clock);
    side.attach(this.opener(side));
    return side;
  }
}

export const NO_ENDPOINTS: Rejection = {
  kind: 'rejected',
  code: 'ServiceUnavailable',
  message: 'failed to find endpoint candidates for serving the request',
  reason: 'rejected-no-endpoints',
  unscheduled: true,
};
