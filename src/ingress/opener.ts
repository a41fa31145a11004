import { HeldBytes } from './byte-budget.js';
import { DestinationTemplates } from './codec/destination.js';
import type { SharedLoad, StreamLoad, StreamServices } from './exchange.js';
import { ExchangeStream } from './stream.js';
import type { ProcessHandler, ProcessStream } from './transport.js';
import { TurnBudget } from './turn-budget.js';

/** What a transport calls for every new stream, with a look at what the streams hold. */
export interface StreamOpener {
  (stream: ProcessStream): ProcessHandler;
  load(): StreamLoad;
  /** What the streams hold; the transport's own bytes count here as well. */
  readonly held: HeldBytes;
}

/** Endpoints (and lists of them) whose encoded form is kept: a large pool with some fallback lists. */
const TEMPLATE_CAPACITY = 8_192;
/** New requests of one turn run this long before messages of older ones are read again. */
const NEW_WORK_SLICE_MS = 5;
/** Far above a burst that clears in time, far below what would fill the memory. */
const WAITING_MAX = 8_192;
/** Who would wait longer is better served by another replica or a retry. */
const WAIT_MS_MAX = 1_000;
/** Streams beyond `maxStreams` that wait for the first message, to answer it with a 503. */
const SILENT_MAX = 8_192;
const GRPC_RESOURCE_EXHAUSTED = 8;

/** Handler of a stream that has failed as it was opened. */
const DEAF: ProcessHandler = {
  message: () => {},
  halfClosed: () => {},
  overflowed: () => {},
  stalled: () => {},
  closed: () => {},
};

/** The entry of a shard: one handler for every ext_proc stream. */
export function createStreamOpener(services: StreamServices): StreamOpener {
  const load: SharedLoad = { openStreams: 0, held: new HeldBytes(services.limits.maxBufferedBytes), silentStreams: 0 };
  const gate = new TurnBudget({
    now: services.now,
    defer: (run) => setImmediate(run),
    sliceMs: NEW_WORK_SLICE_MS,
    maxWaiting: WAITING_MAX,
    maxWaitMs: WAIT_MS_MAX,
  });
  const context = { services, load, gate, templates: new DestinationTemplates(TEMPLATE_CAPACITY) };
  const open = (stream: ProcessStream): ProcessHandler => {
    const refused = load.openStreams >= services.limits.maxStreams;
    if (!refused || load.silentStreams < SILENT_MAX) return new ExchangeStream(context, stream, refused);
    services.recorder.overloaded();
    stream.fail(GRPC_RESOURCE_EXHAUSTED, 'too many streams');
    return DEAF;
  };
  const { held } = load;
  const look = (): StreamLoad => ({
    openStreams: load.openStreams,
    bufferedBytes: held.bytes,
    silentStreams: load.silentStreams,
    waiting: gate.waiting,
  });
  return Object.assign(open, { load: look, held });
}
