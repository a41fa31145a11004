import { type ApiClient, ApiFailure, type StatusObject, statusFailure } from './api-client.js';
import { errorText } from './error-text.js';
import { type KeptFields, unionOfFields } from './kept-fields.js';
import { type Kind, kindPath, resourceName } from './kinds.js';
import { Batch, FirstState, metadataOf, ObjectCopy, type ObjectProblem } from './object-copy.js';
import { RetryPauses } from './retry-pauses.js';
import { BrokenStream, readWatch, type WatchEvent } from './watch-stream.js';

export type ReflectorState = 'probing' | 'listing' | 'watching' | 'waiting' | 'absent' | 'forbidden';

export interface ReflectorOptions<Value> {
  readonly client: ApiClient;
  readonly kind: Kind;
  readonly namespace: string;
  /** Only the object of this name. */
  readonly name?: string | undefined;
  /** Objects whose labels a selector accepts. */
  readonly labels?: SelectedLabels | undefined;
  /** Longest pause between two tries. */
  readonly backoffMsMax: number;
  /**
   * Whether one page is asked for before a first state over the watch. It is the first state when it holds all objects.
   * The API server ends a first state over the watch at its next tick, which comes once a second.
   */
  readonly pageFirst?: boolean;
  /** Time without a byte after which a watch counts as dead. Default 90 s: bookmarks come once a minute. */
  readonly silenceMs?: number;
  /** Pause before the cluster is asked again for a missing kind. Default 5 s. */
  readonly absentRetryMs?: number;
  /** Reduces an object to its kept fields. */
  readonly read: (object: unknown) => Value | ObjectProblem;
  /** Fields that `read` needs; others are passed over. Undefined = all. */
  readonly fields?: KeptFields | undefined;
  /** Values that are new or differ, and values that are gone, after every piece of a stream. */
  readonly changed: (set: readonly Value[], removed: readonly Value[]) => void;
  /** Called when the state, or its text, has changed. */
  readonly stateChanged?: (() => void) | undefined;
  readonly report: (problem: string) => void;
  /** Counts to add to; undefined = counts of its own. */
  readonly counts?: ReflectorCounts | undefined;
  /** Milliseconds of a clock that never steps back. */
  readonly now?: () => number;
  /** From [0, 1). */
  readonly random?: () => number;
}

/** A label selector, as text for the server and as a function. */
export interface SelectedLabels {
  readonly selector: string;
  readonly accepts: (labels: Readonly<Record<string, string>>) => boolean;
}

/** Counts since the start, of one reflector or of several. */
export interface ReflectorCounts {
  /** First states by reason. */
  readonly relists: Map<string, number>;
  /** Streams that broke, by reason. */
  readonly reconnects: Map<string, number>;
  /** Reflectors that are started and not stopped. */
  running: number;
}

const RETRY_AFTER_MS_MAX = 30_000;
/** Life of a stream that shows a healthy server. */
const HEALTHY_LIFE_MS = 10_000;
/** A stream that ends sooner without an event counts as failed. */
const SHORT_LIFE_MS = 1_000;
const SILENCE_MS = 90_000;
/**
 * A server that does not know `sendInitialEvents` never marks the end of the first state; others send it without a
 * pause.
 */
const FIRST_STATE_SILENCE_MS = 1_500;
/** Drawn between these bounds, as client-go does, so that not all watches end at once. */
const STREAM_SECONDS = [300, 600] as const;
const PAGE_OBJECTS = 500;
const FIRST_STATE_END = 'k8s.io/initial-events-end';
/** Fields read of every object, and of a Status object, which a watch sends in place of one. */
const OWN_FIELDS: KeptFields = {
  metadata: { name: true, uid: true, resourceVersion: true, labels: true, annotations: { [FIRST_STATE_END]: true } },
  ...{ code: true, reason: true, message: true, details: true },
};
const FIRST_STATE_QUERY = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan';

/**
 * Keeps a copy of the objects of one kind (design of client-go's reflector): first state over the watch, in pages where
 * the server does not offer that, then changes. While the server is away or a new first state is incomplete, the old
 * copy stands.
 */
export class Reflector<Value> {
  readonly #options: ReflectorOptions<Value>;
  readonly #now: () => number;
  readonly #random: () => number;
  readonly #copy: ObjectCopy<Value>;
  readonly #fields: KeptFields | undefined;
  readonly #counts: ReflectorCounts;
  #running = false;
  readonly #stopping = new AbortController();
  /** Last version that was seen; undefined = a first state is needed. */
  #version: string | undefined;
  #relistReason = 'start';
  #pages = false;
  /** Whether the connection broke: the server may be another one since, with other versions. */
  #doubtful = false;
  #state: ReflectorState = 'probing';
  #synced = false;
  readonly #pauses: RetryPauses;
  #eventful = false;
  #heardMs: number;
  #complaint = '';
  #problem = '';

  constructor(options: ReflectorOptions<Value>) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#random = options.random ?? Math.random;
    this.#pauses = new RetryPauses(options, this.#random);
    this.#copy = new ObjectCopy(options);
    this.#counts = options.counts ?? { relists: new Map(), reconnects: new Map(), running: 0 };
    this.#fields = options.fields && unionOfFields(options.fields, OWN_FIELDS);
    this.#heardMs = this.#now();
  }

  get kind(): Kind {
    return this.#options.kind;
  }

  get state(): ReflectorState {
    return this.#state;
  }

  /** Whether there has been a complete first state, or the cluster does not have the kind. */
  get synced(): boolean {
    return this.#synced;
  }

  /** Present obstacle in words; empty while it watches. */
  get problem(): string {
    return this.#problem;
  }

  /** Time since the server was last heard, in milliseconds. On a quiet watch bookmarks come once a minute. */
  get silentMs(): number {
    return this.#now() - this.#heardMs;
  }

  get rejected(): number {
    return this.#copy.rejected;
  }

  get size(): number {
    return this.#copy.size;
  }

  get counts(): ReflectorCounts {
    return this.#counts;
  }

  values(): Value[] {
    return this.#copy.values();
  }

  /** Begins to follow the objects. */
  start(): void {
    this.#running = true;
    this.#counts.running++;
    void this.#run();
  }

  stop(): void {
    if (this.#running) this.#counts.running--;
    this.#running = false;
    this.#stopping.abort();
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const began = this.#now();
      this.#eventful = false;
      let pauseMs = 0;
      try {
        await (this.#version === undefined ? this.#firstState() : this.#resume(this.#version));
        // The server ended the stream, as it does every few minutes.
        if (this.#eventful || this.#now() - began >= SHORT_LIFE_MS) this.#pauses.streamed();
        else pauseMs = this.#pauses.backoffMs();
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        if (this.#now() - began >= HEALTHY_LIFE_MS) this.#pauses.streamed();
        pauseMs = this.#recover(error);
      }
      if (pauseMs > 0) await pause(pauseMs, this.#stopping.signal);
    }
  }

  async #firstState(): Promise<void> {
    count(this.#counts.relists, this.#relistReason);
    if (!this.#synced) this.#become('listing');
    if (this.#pages) {
      this.#pages = false;
      await this.#listPages();
      return;
    }
    if (this.#options.pageFirst !== true || !(await this.#listOnePage())) await this.#watch(undefined);
  }

  /**
   * Goes on from a version. A watch from a version that the server does not know yet, as after a restore of etcd from a
   * backup, is silent until its versions have caught up (seen with 1.36); a list from it says so.
   */
  async #resume(version: string): Promise<void> {
    if (this.#doubtful) {
      const from = `resourceVersion=${encodeURIComponent(version)}&resourceVersionMatch=NotOlderThan`;
      await this.#options.client.request('GET', this.#path(`limit=1&${from}`));
      this.#doubtful = false;
    }
    await this.#watch(version);
  }

  /** The path with its selectors and further parameters. */
  #path(parameters: string): string {
    const { kind, namespace, name, labels } = this.#options;
    const selected = [
      parameters,
      name === undefined ? '' : `fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`,
      labels === undefined ? '' : `labelSelector=${encodeURIComponent(labels.selector)}`,
    ];
    return `${kindPath(kind, namespace)}?${selected.filter((one) => one !== '').join('&')}`;
  }

  /** Watches from a version on; without one the server sends the first state in front. */
  async #watch(version: string | undefined): Promise<void> {
    const [least, most] = STREAM_SECONDS;
    const seconds = Math.floor(least + this.#random() * (most - least));
    const from = version === undefined ? FIRST_STATE_QUERY : `resourceVersion=${encodeURIComponent(version)}`;
    const path = this.#path(`watch=true&${from}&allowWatchBookmarks=true&timeoutSeconds=${seconds}`);
    const response = await this.#options.client.open(path, this.#stopping.signal);
    this.#answered();
    if (version !== undefined) this.#become('watching');
    const stream: Stream<Value> = { first: version === undefined ? new FirstState() : undefined };
    await readWatch(response, {
      silenceMs: () => (stream.first === undefined ? (this.#options.silenceMs ?? SILENCE_MS) : FIRST_STATE_SILENCE_MS),
      heard: () => {
        this.#heardMs = this.#now();
      },
      events: (events) => this.#take(events, stream),
      fields: this.#fields,
    });
    if (stream.first !== undefined) throw new BrokenStream('connection', 'the stream ended inside the first state');
  }

  /** Applies the events of one piece of a stream; what came before an error in it counts. */
  #take(events: readonly WatchEvent[], stream: Stream<Value>): void {
    const batch = new Batch<Value>();
    try {
      for (const event of events) this.#takeOne(event, stream, batch);
    } finally {
      this.#tell(batch);
    }
  }

  #takeOne({ type, object }: WatchEvent, stream: Stream<Value>, batch: Batch<Value>): void {
    if (type === 'ERROR') throw statusFailure(object as StatusObject);
    const { annotations, resourceVersion } = metadataOf(object);
    if (stream.first === undefined) {
      if (type !== 'BOOKMARK') this.#copy.apply(this.#isSelected(object) ? type : 'DELETED', object, batch);
    } else if (type !== 'BOOKMARK') {
      this.#copy.collect(this.#isSelected(object) ? type : 'DELETED', object, stream.first);
      return;
    } else if (annotations?.[FIRST_STATE_END] !== 'true') return;
    else {
      this.#swap(stream.first, batch);
      stream.first = undefined;
      this.#become('watching');
    }
    if (resourceVersion !== undefined) this.#version = resourceVersion;
    this.#eventful = true;
    this.#pauses.streamed();
  }

  /**
   * Whether the object matches the selector. A server that does not apply one, as small test servers do, must not bring
   * in other objects.
   */
  #isSelected(object: unknown): boolean {
    const { name, labels } = this.#options;
    const metadata = metadataOf(object);
    if (name !== undefined && metadata.name !== name) return false;
    return labels === undefined || labels.accepts(metadata.labels ?? {});
  }

  /** Puts a complete first state in the place of the copy; the first one of all is told even when it is empty. */
  #swap(first: FirstState<Value>, batch: Batch<Value>): void {
    this.#copy.swap(first, batch);
    if (!this.#synced) batch.tell = true;
    this.#synced = true;
  }

  #tell(batch: Batch<Value>): void {
    if (batch.tell || !batch.empty) this.#options.changed(batch.changes, batch.removals);
  }

  async #listPages(): Promise<void> {
    const first = new FirstState<Value>();
    let page: ObjectList;
    let token = '';
    do {
      page = await this.#page(token, first);
      token = page.metadata?.continue ?? '';
    } while (token !== '');
    this.#swapListed(first, page);
  }

  /** @returns whether one page holds all objects; nothing of a part counts */
  async #listOnePage(): Promise<boolean> {
    const first = new FirstState<Value>();
    const page = await this.#page('', first);
    if ((page.metadata?.continue ?? '') !== '') return false;
    this.#swapListed(first, page);
    return true;
  }

  async #page(token: string, first: FirstState<Value>): Promise<ObjectList> {
    const parameters = `limit=${PAGE_OBJECTS}${token === '' ? '' : `&continue=${encodeURIComponent(token)}`}`;
    const take = (object: unknown) => {
      if (this.#isSelected(object)) this.#copy.collect('ADDED', object, first);
    };
    const page = (await this.#options.client.list(this.#path(parameters), this.#fields, take)) as ObjectList;
    this.#answered();
    return page;
  }

  #swapListed(first: FirstState<Value>, { metadata }: ObjectList): void {
    const batch = new Batch<Value>();
    this.#swap(first, batch);
    this.#version = metadata?.resourceVersion;
    this.#become('watching');
    this.#tell(batch);
  }

  /** Takes a good answer of the server. */
  #answered(): void {
    this.#heardMs = this.#now();
    this.#pauses.answered();
    if (this.#complaint !== '' && this.#state === 'forbidden') this.#options.report(`${this.#resource()}: allowed now`);
    this.#complaint = '';
  }

  /** Decides what follows a failure. @returns the pause before the next try, in milliseconds */
  #recover(error: unknown): number {
    const inFirstState = this.#version === undefined;
    if (error instanceof BrokenStream) {
      this.#doubtful ||= error.kind === 'silence' || error.kind === 'connection';
      count(this.#counts.reconnects, error.kind);
      if (inFirstState && error.kind === 'silence') this.#pages = true;
      return this.#wait(error.message, this.#pauses.backoffMs());
    }
    if (!(error instanceof ApiFailure)) {
      // After an exception in a reader or receiver the stream opens again, so that nothing is lost.
      count(this.#counts.reconnects, 'exception');
      this.#complain(`unexpected: ${errorText(error)}`);
      return this.#wait(String(error), this.#pauses.backoffMs());
    }
    count(this.#counts.reconnects, error.status === 0 ? 'no answer' : String(error.status));
    if (error.status !== 0) this.#heardMs = this.#now();
    else this.#doubtful = true;
    return this.#recoverFrom(error, inFirstState);
  }

  #recoverFrom(error: ApiFailure, inFirstState: boolean): number {
    const { status, causes, message } = error;
    this.#pauses.failedWith(status);
    if (status === 410) return this.#relist('expired', message);
    // The server's versions are behind ours: etcd came back from a backup. Otherwise the watch would wait without a
    // bound.
    if (causes.includes('ResourceVersionTooLarge')) return this.#relist('version too large', message);
    if (status === 403) return this.#forbidden(message);
    if (status === 404) return this.#missing();
    if (status === 429)
      return this.#wait(message, Math.min(error.retryAfterMs ?? this.#pauses.backoffMs(), RETRY_AFTER_MS_MAX));
    if (inFirstState && (status === 400 || status === 422 || status === 500)) this.#pages = true;
    // Two in a row: fresh credentials were refused as well.
    if (status === 401 && this.#pauses.isUnauthorised())
      this.#complain(`the API server does not accept the credentials: ${message}`);
    return this.#wait(message, this.#pauses.backoffMs());
  }

  /** Reads the first state again, at once unless that has just failed as well; the old copy serves until then. */
  #relist(reason: string, message: string): number {
    this.#version = undefined;
    this.#doubtful = false;
    this.#relistReason = reason;
    return this.#wait(message, this.#pauses.relistMs());
  }

  #forbidden(message: string): number {
    const { namespace } = this.#options;
    const { pauseMs, isLasting } = this.#pauses.forbidden();
    if (isLasting) {
      this.#complain(
        `${this.#resource()}: get, list, watch in namespace ${namespace}: forbidden; ` +
          `add the rule to the Role of the service account (deploy/rbac). The server says: ${message}`,
      );
    }
    this.#become('forbidden', `${this.#resource()}: list, watch in namespace ${namespace}: forbidden`);
    return pauseMs;
  }

  /** Drops the objects of a kind that the cluster does not have. */
  #missing(): number {
    const { pauseMs, isConfirmed } = this.#pauses.missing();
    if (!isConfirmed && this.#copy.size > 0) return pauseMs;
    this.#version = undefined;
    this.#relistReason = 'served again';
    const batch = new Batch<Value>();
    this.#swap(new FirstState(), batch);
    this.#become('absent', `the cluster does not have ${this.#resource()}; install its CRD`);
    this.#tell(batch);
    return pauseMs;
  }

  #wait(problem: string, pauseMs: number): number {
    this.#become('waiting', problem);
    return pauseMs;
  }

  #become(state: ReflectorState, problem = ''): void {
    if (this.#state === state && this.#problem === problem) return;
    this.#state = state;
    this.#problem = problem;
    this.#options.stateChanged?.();
  }

  #complain(complaint: string): void {
    if (complaint !== this.#complaint) this.#options.report(complaint);
    this.#complaint = complaint;
  }

  #resource(): string {
    return resourceName(this.#options.kind);
  }
}

/** A list without its objects. */
interface ObjectList {
  readonly metadata?: { readonly continue?: string; readonly resourceVersion?: string };
}

interface Stream<Value> {
  /** Collects the first state until its end. */
  first: FirstState<Value> | undefined;
}

function count(counts: Map<string, number>, reason: string): void {
  counts.set(reason, (counts.get(reason) ?? 0) + 1);
}

/** Resolves after a time, or when the signal is aborted. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
  });
}
