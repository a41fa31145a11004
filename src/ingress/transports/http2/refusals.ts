import { errorTrailers, GrpcStatus, type PlainAnswer, plainAnswerOf } from './reply-headers.js';
import type { RequestHead } from './request-head.js';

const GRPC_CONTENT_TYPE = /^application\/grpc(?:$|[+;])/;
const HEADERS_TOO_LARGE = plainAnswerOf(431, 'the headers are longer than 64 KB\n');
const METHOD_NOT_ALLOWED = plainAnswerOf(405, 'this port takes gRPC calls, which are POST requests\n');
const UNSUPPORTED_MEDIA_TYPE = plainAnswerOf(415, 'this port takes gRPC calls: content-type application/grpc\n');

/** Characters of a malformed `grpc-timeout` that the refusal shows. */
const TIMEOUT_SHOWN = 20;

/** The answer to what is no gRPC call; undefined when it is one. */
export function plainAnswer({ tooLarge, method, contentType }: RequestHead): PlainAnswer | undefined {
  if (tooLarge) return HEADERS_TOO_LARGE;
  if (method !== 'POST') return METHOD_NOT_ALLOWED;
  return GRPC_CONTENT_TYPE.test(contentType ?? '') ? undefined : UNSUPPORTED_MEDIA_TYPE;
}

/** Refusal of a gRPC call, as its header block; undefined when it is. @param known its method is served */
export function refusalOf({ encoding, path, badTimeout }: RequestHead, known: boolean): Buffer | undefined {
  if (!known) return errorTrailers(GrpcStatus.unimplemented, `unknown method ${path}`, true);
  if (badTimeout !== undefined) {
    const text =
      `grpc-timeout ${badTimeout.slice(0, TIMEOUT_SHOWN)} is none: send up to 8 digits and one of H, M, ` +
      'S, m, u, n';
    return errorTrailers(GrpcStatus.invalidArgument, text, true);
  }
  if (encoding === undefined || encoding === 'identity') return undefined;
  return errorTrailers(GrpcStatus.unimplemented, `grpc-encoding ${encoding} is not taken: send identity`, true);
}
