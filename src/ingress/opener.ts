import { shareOf } from '../contract/bounds.js';
import { overloaded } from '../request/rejections.js';
import { HeldBytes } from './byte-budget.js';
import type { ClientShares } from './client-shares.js';
import { DestinationTemplates } from './codec/destination.js';
import type { PoolUse, SharedLoad, StreamContext, StreamLoad, StreamServices } from './exchange.js';
import type { PoolChoice } from './pool-choice.js';
import { rejectionReply } from './replies.js';
import { ExchangeStream, TOO_MANY_NEW } from './stream.js';
import type { ProcessHandler, ProcessStream, StreamEntry } from './transport.js';
import { TurnBudget } from './turn-budget.js';

/** Function that a transport calls for every new stream, with a look at what the streams hold. */
export interface StreamOpener extends StreamEntry {
  load(): StreamLoad;
  /** Bytes that the streams hold; the transport counts its own here as well. */
  readonly held: HeldBytes;
  /** Context of another pool's streams: they share bounds and turns with all others of the shard. */
  contextOf(services: StreamServices, use: PoolUse | undefined): StreamContext;
  /** Entry of streams whose pool is known at their begin, because it has a port of its own. */
  entryOf(context: StreamContext): StreamEntry;
}

/** Endpoints (and lists of them) whose encoded form is kept: a large pool with some fallback lists. */
const TEMPLATE_CAPACITY = 8_192;
/** Duration in milliseconds of one turn's new requests, after which messages of older ones are read again. */
export const NEW_WORK_SLICE_MS = 5;
/** The same while clients of several addresses are active: none waits long for the work of another. */
const SHARED_SLICE_MS = 1;
/** Far above a burst that clears in time, far below what would fill the memory. */
const WAITING_MAX = 4_096;
/** Age at which a new request of a burst is refused. */
const WAIT_MS_MAX = 2_000;
/** Time for which sockets with new requests are read before waiting ones go on. */
const READ_MS_MAX = 10;
/** Wait of new requests while more of them come than the thread can serve. */
const STANDING_WAIT_MS = 200;
/** Age at which a new request is refused in an overload, beyond the length of a turn. */
const OVERLOAD_WAIT_MS = 60;
/**
 * A queue that has grown in 0.2 of the last 0.25 s is that of an overload: stalls of a warm thread at 0.7 times its
 * capacity are over by then. From 0.05 s on the newest work goes first, in case that it is one.
 */
const WINDOWS = { windowMs: 25, coldWork: 2_048, suspectWindows: 2, overloadWindows: 8, latestWindows: 10 };
/**
 * Bounds on the requests that wait then, by number and by their time: less than one turn serves, since the sockets hold
 * the next ones. Waiting requests survive garbage collections: with 600 of them a request costs 1.5 times as much as
 * with 150.
 */
const SHORT_QUEUE = 128;
const SHORT_QUEUE_MS = 3;
/**
 * Requests that are taken in each 200 ms whatever their age: 80 a second are no overload, only a thread that was held
 * up.
 */
const LIGHT_MAX = 16;
/** Bounds on new work of a shard, but for its part of a turn. */
export const TURN_BUDGET = {
  waitingMax: WAITING_MAX,
  waitMsMax: WAIT_MS_MAX,
  standingWaitMs: STANDING_WAIT_MS,
  overloadWaitMs: OVERLOAD_WAIT_MS,
  windows: WINDOWS,
  shortQueue: SHORT_QUEUE,
  shortQueueMs: SHORT_QUEUE_MS,
  lightMax: LIGHT_MAX,
  readMsMax: READ_MS_MAX,
};
/** Streams beyond `maxStreams` that wait for the first message, to answer it with a 503. */
const SILENT_MAX = 8_192;
const GRPC_RESOURCE_EXHAUSTED = 8;

/** Handler of a stream that was refused when it was opened: it ignores all messages. */
const IGNORING: ProcessHandler = {
  message: () => {},
  halfClosed: () => {},
  overflowed: () => {},
  stalled: () => {},
  closed: () => {},
};

/**
 * The entry of a shard: one handler for every ext_proc stream.
 * @param services of the process's own pool, which counts what concerns no pool
 * @param pools chooses the pool of each request; undefined = all are for the own one
 * @param shares of the clients whose streams it takes
 */
export function createStreamOpener(
  services: StreamServices,
  pools?: PoolChoice<StreamContext>,
  shares?: Pick<ClientShares, 'isContended'>,
): StreamOpener {
  const load: SharedLoad = {
    openStreams: 0,
    held: new HeldBytes(shareOf(services.bounds.maxBufferedBytes, services.bounds)),
    silentStreams: 0,
  };
  const streamsMax = shareOf(services.bounds.maxStreams, services.bounds);
  const gate = new TurnBudget({
    now: services.now,
    recent: services.recent,
    defer: (run) => setImmediate(run),
    get sliceMs() {
      return shares?.isContended === true ? SHARED_SLICE_MS : NEW_WORK_SLICE_MS;
    },
    ...TURN_BUDGET,
  });
  const templates = new DestinationTemplates(TEMPLATE_CAPACITY);
  const openIn = (context: StreamContext, stream: ProcessStream): ProcessHandler => {
    const refused = load.openStreams >= streamsMax;
    if (!refused || load.silentStreams < SILENT_MAX) return new ExchangeStream(context, stream, refused);
    services.recorder.overloaded();
    stream.fail(GRPC_RESOURCE_EXHAUSTED, 'too many streams');
    return IGNORING;
  };
  const entry: StreamContext =
    pools === undefined
      ? { services, load, gate, templates }
      : { services: beforeChoice(services, pools), load, gate, templates, pools };
  const open = (stream: ProcessStream): ProcessHandler => openIn(entry, stream);
  const refusal = rejectionReply(TOO_MANY_NEW);
  const crowdedRefusal = rejectionReply(overloaded('too many streams of one client'));
  const turnAway = (arrivedAt: number, crowded: boolean, passes: boolean): Uint8Array | undefined => {
    if (!crowded && (passes || !gate.refuses(arrivedAt))) return undefined;
    const { recorder, now } = services;
    recorder.overloaded();
    recorder.streamOpened();
    recorder.streamClosed('OK', (now() - arrivedAt) / 1_000);
    return crowded ? crowdedRefusal : refusal;
  };
  const abandoned = (arrivedAt: number): void => {
    services.recorder.streamOpened();
    services.recorder.streamClosed('Canceled', (services.now() - arrivedAt) / 1_000);
  };
  const { held } = load;
  const look = (): StreamLoad => ({
    openStreams: load.openStreams,
    bufferedBytes: held.bytes,
    silentStreams: load.silentStreams,
    waiting: gate.waiting,
  });
  const behind = () => gate.behind();
  return Object.assign(open, {
    turnAway,
    abandoned,
    behind,
    load: look,
    held,
    contextOf: (of: StreamServices, use: PoolUse | undefined) => ({ services: of, load, gate, templates, use }),
    entryOf: (context: StreamContext) =>
      Object.assign((stream: ProcessStream) => openIn(context, stream), { turnAway, abandoned, behind }),
  });
}

/**
 * Services of streams whose pool is not known: every body that can name a model is read, in the blocks of most pools.
 */
function beforeChoice(services: StreamServices, pools: PoolChoice<StreamContext>): StreamServices {
  const settings = {
    get current() {
      return { ...services.settings.current, dialects: pools.dialects };
    },
  };
  return { ...services, settings, blockBytes: () => pools.blockBytes ?? services.blockBytes() };
}
