import type { ServerUnaryCall, ServerWritableStream, sendUnaryData } from '@grpc/grpc-js';
import type { HealthSource, ServingStatus } from '../transport.js';
import { decodeHealthRequest, encodeHealthList, encodeHealthResponse } from './health-messages.js';

const GRPC_INVALID_ARGUMENT = 3;
const GRPC_NOT_FOUND = 5;

type Bytes = Buffer;

/** The handlers of `grpc.health.v1.Health` over raw messages. */
export interface HealthHandlers {
  check(call: ServerUnaryCall<Bytes, Bytes>, callback: sendUnaryData<Bytes>): void;
  list(call: ServerUnaryCall<Bytes, Bytes>, callback: sendUnaryData<Bytes>): void;
  watch(call: ServerWritableStream<Bytes, Bytes>): void;
  /** Ends all watches. */
  close(): void;
}

function readService(bytes: Uint8Array): string | undefined {
  try {
    return decodeHealthRequest(bytes);
  } catch {
    return undefined;
  }
}

const MALFORMED = { code: GRPC_INVALID_ARGUMENT, details: 'malformed HealthCheckRequest' };

/** Health checks of https://github.com/grpc/grpc/blob/master/doc/health-checking.md, answered from `health`. */
export function healthHandlers(health: HealthSource): HealthHandlers {
  const watches = new Set<() => void>();
  return {
    check(call, callback) {
      const service = readService(call.request);
      if (service === undefined) return callback(MALFORMED);
      const status = health.status(service);
      if (status === 'SERVICE_UNKNOWN') {
        return callback({ code: GRPC_NOT_FOUND, details: `unknown service ${JSON.stringify(service)}` });
      }
      callback(null, encodeHealthResponse(status));
    },
    list(_call, callback) {
      callback(null, encodeHealthList(health.services().map((name) => [name, health.status(name)] as const)));
    },
    watch(call) {
      const service = readService(call.request);
      if (service === undefined) {
        call.emit('error', MALFORMED);
        return;
      }
      // An unknown service is watched too: it may come to exist.
      let last: ServingStatus | undefined;
      const tell = (): void => {
        const status = health.status(service);
        if (status !== last) call.write(encodeHealthResponse(status));
        last = status;
      };
      const unwatch = health.watch(tell);
      const stop = (): void => {
        if (!watches.delete(stop)) return;
        unwatch();
        call.end();
      };
      watches.add(stop);
      call.on('cancelled', stop);
      tell();
    },
    close() {
      for (const stop of [...watches]) stop();
    },
  };
}
