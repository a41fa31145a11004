import type { Bounds } from '../contract/bounds.js';
import { CORE } from '../core/core-names.js';
import { defaultPoolSizes } from '../core/memory.js';
import { type FlagValues, flag } from './flag.js';
import { parseBytes, parseFlagDuration, parseInteger, parseMessageSize } from './flag-values.js';

const LIMITS = 'Limits';
const MEBIBYTE = 1024 * 1024;

/** gRPC's own default for one message. */
const DEFAULT_MESSAGE_BYTES = 4 * MEBIBYTE;

const messageSize = (doc: string) =>
  flag<number | undefined>(LIMITS, '<size>', undefined, undefined, parseMessageSize, doc);

/** Flags of the bounds, in the order of the help. */
export const BOUNDS_FLAGS = {
  shards: flag(LIMITS, '<number>', 1, '1', parseInteger(1, 64), 'Threads that serve ext_proc.'),
  'max-streams': flag(
    LIMITS,
    '<number>',
    10_000,
    '10000',
    parseInteger(1, 1_000_000),
    'Open ext_proc streams; more get a quick 503.',
  ),
  'max-connections': flag(LIMITS, '<number>', 1024, '1024', parseInteger(1, 1_000_000), 'Open ext_proc connections.'),
  'request-idle-timeout': flag(
    LIMITS,
    '<duration>',
    60_000,
    '60s',
    parseFlagDuration(1),
    'Requests of which nothing comes for so long get a 408.',
  ),
  'max-request-body-size': flag(LIMITS, '<size>', 64 * MEBIBYTE, '64Mi', parseBytes, 'Larger bodies get a 413.'),
  'max-buffered-bytes': flag(LIMITS, '<size>', 512 * MEBIBYTE, '512Mi', parseBytes, 'Request bytes held at once.'),
  'max-endpoints': flag(
    LIMITS,
    '<number>',
    512,
    '512',
    parseInteger(1, CORE.ENDPOINTS_MAX),
    'Endpoint slots of the pool, rounded up to a multiple of 64; further endpoints are left out.',
  ),
  'index-blocks': flag(
    LIMITS,
    '<number>',
    1_048_576,
    '1048576',
    parseInteger(1024, 2 ** 28),
    'Different blocks that the prefix index can hold.',
  ),
  'grpc-max-recv-msg-size': messageSize('Largest message from the proxy, such as 10Mi.'),
  'grpc-max-send-msg-size': messageSize('Largest message to the proxy.'),
  'decision-log-size': flag(
    LIMITS,
    '<number>',
    65_536,
    '65536',
    parseInteger(0, 2 ** 22),
    'Decisions kept for "why" and the page; 0 = none.',
  ),
};

/** Bounds of the process and of its own pool. */
export function boundsOf(flags: FlagValues<typeof BOUNDS_FLAGS>): Bounds {
  return {
    shards: flags.shards,
    maxStreams: flags.maxStreams,
    maxConnections: flags.maxConnections,
    maxBufferedBytes: flags.maxBufferedBytes,
    maxRequestBodyBytes: flags.maxRequestBodySize,
    requestIdleMs: flags.requestIdleTimeout,
    maxReceiveBytes: flags.grpcMaxRecvMsgSize ?? DEFAULT_MESSAGE_BYTES,
    maxSendBytes: flags.grpcMaxSendMsgSize ?? Number.MAX_SAFE_INTEGER,
    maxEndpoints: flags.maxEndpoints,
    indexBlocks: flags.indexBlocks,
    maxCharges: defaultPoolSizes.requests,
    decisions: flags.decisionLogSize,
  };
}
