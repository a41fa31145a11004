import { once } from 'node:events';
import {
  type ChannelCredentials,
  type Client,
  type ClientDuplexStream,
  credentials,
  makeGenericClientConstructor,
} from '@grpc/grpc-js';
import { bytesField } from './envoy-messages.ts';

/** A bidirectional or server-streaming call of raw messages. */
export type Call = ClientDuplexStream<Buffer, Buffer>;

type HealthReply = (error: { code: number } | null, reply?: Buffer) => void;

interface Calls {
  process(): Call;
  check(request: Buffer, done: HealthReply): void;
  check(request: Buffer, options: { readonly deadline: number }, done: HealthReply): void;
  list(request: Buffer, done: (error: { code: number } | null, reply?: Buffer) => void): void;
  watch(request: Buffer): Call;
}

/** The proxy's side of ext_proc and of gRPC health, over one connection of its own. */
export type ProxyClient = Client & Calls;

const raw = (bytes: Buffer): Buffer => bytes;
const method = (path: string, requestStream: boolean, responseStream: boolean) => ({
  path,
  requestStream,
  responseStream,
  requestSerialize: raw,
  requestDeserialize: raw,
  responseSerialize: raw,
  responseDeserialize: raw,
});
const GenericClient = makeGenericClientConstructor(
  {
    process: method('/envoy.service.ext_proc.v3.ExternalProcessor/Process', true, true),
    check: method('/grpc.health.v1.Health/Check', false, false),
    list: method('/grpc.health.v1.Health/List', false, false),
    watch: method('/grpc.health.v1.Health/Watch', false, true),
  },
  'proxy',
);

/** Connects to a picker on this machine; the caller closes the client. */
export function dialPicker(port: number, channel: ChannelCredentials = credentials.createInsecure()): ProxyClient {
  return new GenericClient(`127.0.0.1:${port}`, channel, {
    'grpc.use_local_subchannel_pool': 1,
    'grpc.ssl_target_name_override': 'localhost',
    'grpc.initial_reconnect_backoff_ms': 50,
    'grpc.max_reconnect_backoff_ms': 200,
  }) as unknown as ProxyClient;
}

export interface Collected {
  readonly replies: readonly Buffer[];
  readonly code: number;
  readonly details: string;
}

/** Replies of a call until it ends, and its status. */
export function collect(call: Call): Promise<Collected> {
  const replies: Buffer[] = [];
  call.on('data', (reply: Buffer) => replies.push(reply));
  call.on('error', () => undefined);
  return new Promise((resolve) => {
    call.on('status', ({ code, details }) => resolve({ replies, code, details }));
  });
}

/** Resolves with the first reply. */
export async function firstReply(call: Call): Promise<Buffer> {
  const [reply] = (await once(call, 'data')) as [Buffer];
  return reply;
}

const CHECK_MS_MAX = 5_000;
const STATUSES = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN'] as const;

/** Asks for the health of a service. @returns the code of the failure when there is no answer */
export function checkHealth(client: ProxyClient, service = ''): Promise<(typeof STATUSES)[number] | number> {
  return new Promise((resolve) => {
    client.check(bytesField(1, service), { deadline: Date.now() + CHECK_MS_MAX }, (error, reply) => {
      resolve(error === null ? STATUSES[reply?.[1] ?? 0]! : error.code);
    });
  });
}
