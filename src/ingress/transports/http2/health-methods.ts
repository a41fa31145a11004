import type { HealthSource, ProcessHandler, ProcessStream, ServingStatus } from '../../transport.js';
import { decodeHealthRequest, encodeHealthList, encodeHealthResponse } from '../health-messages.js';
import type { Method } from './server-stream.js';

const GRPC_INVALID_ARGUMENT = 3;
const GRPC_NOT_FOUND = 5;
const GRPC_INTERNAL = 13;

/** The methods of `grpc.health.v1.Health`, and the way to end its watches. */
export interface HealthMethods {
  readonly methods: ReadonlyMap<string, Method>;
  close(): void;
}

/** Health checks of https://github.com/grpc/grpc/blob/master/doc/health-checking.md, answered from `health`. */
export function healthMethods(health: HealthSource): HealthMethods {
  const watches = new Set<Watch>();
  const methods = new Map<string, Method>([
    [
      '/grpc.health.v1.Health/Check',
      { open: (stream) => new Unary(stream, (request) => check(stream, health, request)) },
    ],
    ['/grpc.health.v1.Health/List', { open: (stream) => new Unary(stream, () => list(stream, health)) }],
    ['/grpc.health.v1.Health/Watch', { open: (stream) => new Watch(stream, health, watches) }],
  ]);
  return {
    methods,
    close: () => {
      for (const watch of [...watches]) watch.end();
    },
  };
}

function check(stream: ProcessStream, health: HealthSource, request: Buffer) {
  const service = readService(stream, request);
  if (service === undefined) return;
  const status = health.status(service);
  if (status === 'SERVICE_UNKNOWN') return stream.fail(GRPC_NOT_FOUND, `unknown service ${JSON.stringify(service)}`);
  stream.send(encodeHealthResponse(status));
  stream.end();
}

function list(stream: ProcessStream, health: HealthSource): void {
  stream.send(encodeHealthList(health.services().map((name) => [name, health.status(name)] as const)));
  stream.end();
}

/** The service that a request names; a malformed one ends the stream. */
function readService(stream: ProcessStream, request: Buffer): string | undefined {
  try {
    return decodeHealthRequest(request);
  } catch {
    stream.fail(GRPC_INVALID_ARGUMENT, 'malformed HealthCheckRequest');
    return undefined;
  }
}

/** A call with one request. */
class Unary implements ProcessHandler {
  readonly #stream: ProcessStream;
  readonly #answer: (request: Buffer) => void;

  constructor(stream: ProcessStream, answer: (request: Buffer) => void) {
    this.#stream = stream;
    this.#answer = answer;
  }

  message(bytes: Buffer, from: number, to: number): void {
    this.#answer(bytes.subarray(from, to));
  }

  halfClosed(): void {
    this.#stream.fail(GRPC_INTERNAL, 'the call has no request');
  }

  overflowed(): void {}
  stalled(): void {}
  closed(): void {}
}

/** Tells the state of a service at once, then every change of it, until either side ends the call. */
class Watch implements ProcessHandler {
  readonly #stream: ProcessStream;
  readonly #health: HealthSource;
  readonly #watches: Set<Watch>;
  #service: string | undefined;
  #last: ServingStatus | undefined;
  #unwatch: (() => void) | undefined;

  constructor(stream: ProcessStream, health: HealthSource, watches: Set<Watch>) {
    this.#stream = stream;
    this.#health = health;
    this.#watches = watches;
  }

  message(bytes: Buffer, from: number, to: number): void {
    if (this.#service !== undefined) return;
    this.#service = readService(this.#stream, bytes.subarray(from, to));
    if (this.#service === undefined) return;
    this.#watches.add(this);
    this.#unwatch = this.#health.watch(() => this.#tell());
    this.#tell();
  }

  /** Takes the client's end of its stream, which still takes answers. */
  halfClosed(): void {}
  overflowed(): void {}
  stalled(): void {}

  closed(): void {
    this.#watches.delete(this);
    this.#unwatch?.();
    this.#unwatch = undefined;
  }

  end(): void {
    this.closed();
    this.#stream.end();
  }

  /** Tells the state of the service. An unknown service is watched too: it may come to exist. */
  #tell(): void {
    const status = this.#health.status(this.#service!);
    if (status !== this.#last) this.#stream.send(encodeHealthResponse(status));
    this.#last = status;
  }
}
