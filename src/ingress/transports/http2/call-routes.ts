import { errorTrailers, GrpcStatus, type PlainAnswer, plainAnswerOf } from './reply-headers.js';
import type { RequestHead } from './request-head.js';
import type { Method } from './server-stream.js';

const GRPC_CONTENT_TYPE = /^application\/grpc(?:$|[+;])/;
const HEADERS_TOO_LARGE = plainAnswerOf(431, 'the headers are longer than 64 KB\n');
const METHOD_NOT_ALLOWED = plainAnswerOf(405, 'this port takes gRPC calls, which are POST requests\n');
const UNSUPPORTED_MEDIA_TYPE = plainAnswerOf(415, 'this port takes gRPC calls: content-type application/grpc\n');

/** Characters of a malformed `grpc-timeout` that the refusal shows. */
const TIMEOUT_SHOWN = 20;

/** Finds the handler of a call, or its refusal. */
export class CallRoutes {
  readonly #methods: ReadonlyMap<string, Method>;
  /** Head of the latest call of a method that is served; equal heads are one object as a rule. */
  #servedHead: RequestHead | undefined;
  #served: Method | undefined;
  /** Head of the latest call that was refused, and the answer to it. */
  #refusedHead: RequestHead | undefined;
  #refusal: Buffer | undefined;

  /** @param methods by path */
  constructor(methods: ReadonlyMap<string, Method>) {
    this.#methods = methods;
  }

  /** The method that a call names, the answer to what is no gRPC call, or the header block that refuses a call. */
  find(head: RequestHead): Method | PlainAnswer | Buffer {
    if (head === this.#servedHead) return this.#served!;
    if (head === this.#refusedHead) return this.#refusal!;
    const plain = plainAnswer(head);
    if (plain !== undefined) return plain;
    const method = this.#methods.get(head.path!);
    if (method === undefined) return this.#refuse(head, unknownMethod(head));
    const refusal = refusalOf(head);
    if (refusal !== undefined) return this.#refuse(head, refusal);
    this.#servedHead = head;
    this.#served = method;
    return method;
  }

  #refuse(head: RequestHead, refusal: Buffer): Buffer {
    this.#refusedHead = head;
    this.#refusal = refusal;
    return refusal;
  }
}

/** The answer to a request that is no gRPC call; undefined = it is one. */
function plainAnswer({ tooLarge, method, contentType }: RequestHead): PlainAnswer | undefined {
  if (tooLarge) return HEADERS_TOO_LARGE;
  if (method !== 'POST') return METHOD_NOT_ALLOWED;
  return GRPC_CONTENT_TYPE.test(contentType ?? '') ? undefined : UNSUPPORTED_MEDIA_TYPE;
}

function unknownMethod({ path }: RequestHead): Buffer {
  return errorTrailers(GrpcStatus.unimplemented, `unknown method ${path}`, true);
}

/** Refusal of a call of a method that is served, as its header block; undefined = it is taken. */
function refusalOf({ encoding, badTimeout }: RequestHead): Buffer | undefined {
  if (badTimeout !== undefined) {
    const text =
      `grpc-timeout ${badTimeout.slice(0, TIMEOUT_SHOWN)} is none: send up to 8 digits and one of H, M, ` +
      'S, m, u, n';
    return errorTrailers(GrpcStatus.invalidArgument, text, true);
  }
  if (encoding === undefined || encoding === 'identity') return undefined;
  return errorTrailers(GrpcStatus.unimplemented, `grpc-encoding ${encoding} is not taken: send identity`, true);
}
