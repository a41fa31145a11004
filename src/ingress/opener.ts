import { shareOf } from '../contract/bounds.js';
import { overloaded } from '../request/rejections.js';
import { HeldBytes } from './byte-budget.js';
import type { ClientShares } from './client-shares.js';
import { DestinationTemplates } from './codec/destination.js';
import type { PoolUse, SharedLoad, StreamContext, StreamLoad, StreamServices } from './exchange.js';
import type { PoolChoice } from './pool-choice.js';
import { rejectionReply } from './replies.js';
import { createTurnBudget } from './shard-turn-budget.js';
import { ExchangeStream, TOO_MANY_NEW } from './stream.js';
import type { ProcessHandler, ProcessStream, StreamEntry, UnopenedStreams } from './transport.js';
import type { TurnBudget } from './turn-budget.js';

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
  const held = new HeldBytes(shareOf(services.bounds.maxBufferedBytes, services.bounds));
  const load: SharedLoad = { openStreams: 0, held, silentStreams: 0 };
  const turnBudget = createTurnBudget(services, shares);
  const shared = { load, turnBudget, templates: new DestinationTemplates(TEMPLATE_CAPACITY) };
  const streamsMax = shareOf(services.bounds.maxStreams, services.bounds);
  const openIn = (context: StreamContext, stream: ProcessStream): ProcessHandler => {
    const refused = load.openStreams >= streamsMax;
    if (!refused || load.silentStreams < SILENT_MAX) return new ExchangeStream(context, stream, refused);
    services.recorder.overloaded();
    stream.fail(GRPC_RESOURCE_EXHAUSTED, 'too many streams');
    return IGNORING;
  };
  const unopened = unopenedStreams(services, turnBudget);
  const entryOf = (context: StreamContext): StreamEntry =>
    Object.assign((stream: ProcessStream) => openIn(context, stream), unopened);
  const own: StreamContext =
    pools === undefined ? { ...shared, services } : { ...shared, services: beforeChoice(services, pools), pools };
  return Object.assign(entryOf(own), {
    load: () => ({
      openStreams: load.openStreams,
      bufferedBytes: held.bytes,
      silentStreams: load.silentStreams,
      waiting: turnBudget.waiting,
    }),
    held,
    contextOf: (of: StreamServices, use: PoolUse | undefined) => ({ ...shared, services: of, use }),
    entryOf,
  });
}

/** Judges new streams by the turn budget, and counts those for which nothing was made. */
function unopenedStreams(services: StreamServices, turnBudget: TurnBudget): UnopenedStreams {
  const refusal = rejectionReply(TOO_MANY_NEW);
  const crowdedRefusal = rejectionReply(overloaded('too many streams of one client'));
  const ended = (code: 'OK' | 'Canceled', arrivedAt: number) => {
    services.recorder.streamOpened();
    services.recorder.streamClosed(code, (services.now() - arrivedAt) / 1_000);
  };
  return {
    turnAway: (arrivedAt, crowded, passes) => {
      if (!crowded && (passes || !turnBudget.refuses(arrivedAt))) return undefined;
      services.recorder.overloaded();
      ended('OK', arrivedAt);
      return crowded ? crowdedRefusal : refusal;
    },
    abandoned: (arrivedAt) => ended('Canceled', arrivedAt),
    behind: () => turnBudget.behind(),
  };
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
