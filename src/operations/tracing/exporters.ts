import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { errorMessage } from '../../runtime/error-message.js';
import { PEM_BYTES_MAX, readPlainFileSync } from '../../runtime/plain-file.js';
import { readRefusal } from './otlp.js';
import type { OtlpSettings } from './settings.js';

const compress = promisify(gzip);

/** Longest answer of a receiver, in bytes. */
const ANSWER_BYTES_MAX = 65_536;
const SERVICE = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
/**
 * Statuses after which the protocol allows another try, https://opentelemetry.io/docs/specs/otlp/#failures-1 and -2.
 */
const HTTP_RETRIED: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS. */
const GRPC_RETRIED: ReadonlySet<number> = new Set([1, 4, 10, 11, 14, 15]);

/** An export failed. */
export class ExportFailure extends Error {
  /** Whether the same export may succeed later. */
  readonly isTransient: boolean;
  /** Pause that the receiver asks for. */
  readonly pauseMs: number | undefined;

  constructor(message: string, isTransient: boolean, pauseMs?: number) {
    super(message);
    this.isTransient = isTransient;
    this.pauseMs = pauseMs;
  }
}

/** Sends encoded export requests to one receiver. */
export interface Exporter {
  /**
   * One attempt.
   * @returns the spans that the receiver refused, with its reason; undefined = it accepted all
   * @throws ExportFailure
   */
  send(request: Buffer): Promise<{ readonly spans: number; readonly why: string } | undefined>;
  close(): Promise<void>;
}

/** @throws {Error} one line, when a file of the settings cannot be read */
export async function createExporter(settings: OtlpSettings): Promise<Exporter> {
  return settings.protocol === 'grpc' ? await grpcExporter(settings) : await httpExporter(settings);
}

function pem(file: string | undefined, variable: string): Buffer | undefined {
  if (file === undefined) return undefined;
  try {
    return readPlainFileSync(file, PEM_BYTES_MAX);
  } catch (error) {
    throw new Error(`OTEL_EXPORTER_OTLP_${variable}: ${errorMessage(error)}`);
  }
}

function material({ tls }: OtlpSettings) {
  return {
    ca: pem(tls.certificate, 'CERTIFICATE'),
    key: pem(tls.clientKey, 'CLIENT_KEY'),
    cert: pem(tls.clientCertificate, 'CLIENT_CERTIFICATE'),
  };
}

async function httpExporter(settings: OtlpSettings): Promise<Exporter> {
  const { Agent } = await import('undici');
  const { url, timeoutMs } = settings;
  const agent = new Agent({ connections: 1, pipelining: 1, connect: known(material(settings)) });
  const headers: Record<string, string> = {
    ...Object.fromEntries(settings.headers),
    'content-type': 'application/x-protobuf',
    ...(settings.gzip ? { 'content-encoding': 'gzip' } : {}),
  };
  const post = async (request: Buffer) => {
    const body = settings.gzip ? await compress(request) : request;
    const answer = await agent.request({
      origin: url.origin,
      path: url.pathname + url.search,
      method: 'POST',
      headers,
      body,
      signal: AbortSignal.timeout(timeoutMs),
    });
    const text = await read(answer.body);
    if (answer.statusCode >= 200 && answer.statusCode <= 299) return readRefusal(text);
    const pause = Number(answer.headers['retry-after']);
    const isTransient = HTTP_RETRIED.has(answer.statusCode);
    throw new ExportFailure(`status ${answer.statusCode}`, isTransient, pause >= 0 ? pause * 1_000 : undefined);
  };
  return {
    send: (request) =>
      post(request).catch((error: unknown) => {
        throw error instanceof ExportFailure ? error : new ExportFailure(errorMessage(error), true);
      }),
    close: () => agent.destroy(),
  };
}

function known<T extends object>(values: T): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
}

async function read(body: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > ANSWER_BYTES_MAX) throw new ExportFailure(`an answer of more than ${ANSWER_BYTES_MAX} bytes`, false);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

async function grpcExporter(settings: OtlpSettings): Promise<Exporter> {
  const { default: grpc } = await import('@grpc/grpc-js');
  const { url, timeoutMs } = settings;
  const { ca, key, cert } = material(settings);
  const credentials =
    url.protocol === 'https:'
      ? grpc.credentials.createSsl(ca ?? null, key ?? null, cert ?? null)
      : grpc.credentials.createInsecure();
  const metadata = new grpc.Metadata();
  for (const [name, value] of settings.headers) metadata.set(name.toLowerCase(), value);
  const compression = settings.gzip ? { 'grpc.default_compression_algorithm': 2 } : {};
  const address = `${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '4317')}`;
  const client = new grpc.Client(address, credentials, {
    'grpc.max_receive_message_length': ANSWER_BYTES_MAX,
    ...compression,
  });
  const same = (bytes: Buffer) => bytes;
  return {
    send: (request) => {
      const { promise, resolve, reject } = Promise.withResolvers<ReturnType<typeof readRefusal>>();
      const deadline = Date.now() + timeoutMs;
      client.makeUnaryRequest(SERVICE, same, same, request, metadata, { deadline }, (error, answer) => {
        if (error === null) return resolve(readRefusal(answer ?? Buffer.alloc(0)));
        reject(new ExportFailure(error.details || error.message, GRPC_RETRIED.has(error.code)));
      });
      return promise;
    },
    close: async () => client.close(),
  };
}
