// gRPC frames, and the messages of vLLM's engine service and of Vertex AI, written apart from the code under test.
import { gzipSync } from 'node:zlib';
import { bytesField, numberField, varint } from '../ingress/envoy-messages.ts';

/** One message in its frame. */
export function frame(message: Uint8Array, flag = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** The same, compressed. */
export function packedFrame(message: Uint8Array): Buffer {
  return frame(gzipSync(message), 1);
}

export interface EngineRequest {
  readonly ids?: readonly number[];
  /** Ids one by one instead of in a packed list. */
  readonly unpacked?: boolean;
  readonly originalText?: string;
  readonly text?: string;
  readonly maxTokens?: number;
  readonly stream?: boolean;
}

/** GenerateRequest, or EmbedRequest when only a tokenized input is given. */
export function engineRequest(request: EngineRequest): Buffer {
  const { ids, originalText, text, maxTokens, stream } = request;
  const list =
    ids === undefined
      ? Buffer.alloc(0)
      : request.unpacked
        ? Buffer.concat(ids.map((id) => numberField(2, id)))
        : bytesField(2, ...ids.map(varint));
  const original = originalText === undefined ? Buffer.alloc(0) : bytesField(1, originalText);
  const tokenized = ids !== undefined || originalText !== undefined;
  return Buffer.concat([
    bytesField(1, 'request-1'),
    ...(tokenized ? [bytesField(2, original, list)] : []),
    ...(text === undefined ? [] : [bytesField(3, text)]),
    ...(maxTokens === undefined
      ? []
      : [bytesField(4, Buffer.from([(1 << 3) | 5, 0, 0, 128, 63]), numberField(8, maxTokens))]),
    ...(stream === undefined ? [] : [numberField(5, stream ? 1 : 0)]),
  ]);
}

/** google.api.HttpBody. */
export function httpBody(data: string): Buffer {
  return Buffer.concat([bytesField(1, 'application/json'), bytesField(2, data)]);
}

/** A request of the Vertex AI prediction service. */
export function vertexRequest(data: string): Buffer {
  return Buffer.concat([bytesField(1, 'projects/p/endpoints/e'), bytesField(2, httpBody(data))]);
}

export interface EngineCounts {
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
}

/** GenerateResponse with a chunk. */
export function engineChunk({ prompt, completion, cached }: EngineCounts): Buffer {
  return bytesField(
    1,
    bytesField(1, varint(7)),
    numberField(2, prompt),
    numberField(3, completion),
    numberField(4, cached),
  );
}

/** GenerateResponse with the whole answer. */
export function engineComplete({ prompt, completion, cached }: EngineCounts): Buffer {
  return bytesField(
    2,
    bytesField(1, varint(7)),
    bytesField(2, 'stop'),
    numberField(3, prompt),
    numberField(4, completion),
    numberField(5, cached),
  );
}

/** EmbedResponse. */
export function embedResponse(prompt: number): Buffer {
  return Buffer.concat([bytesField(1, Buffer.alloc(8)), numberField(2, prompt), numberField(3, 2)]);
}

/** The bytes cut in two at `at`. */
export function cutAt(bytes: Buffer, at: number): Buffer[] {
  return [bytes.subarray(0, at), bytes.subarray(at)];
}

/** Every byte by itself. */
export function singly(bytes: Buffer): Buffer[] {
  return [...bytes].map((byte) => Buffer.from([byte]));
}
