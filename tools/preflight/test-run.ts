import { randomBytes } from 'node:crypto';
import type { Answer, GatewayClient, Question } from './gateway-client.js';
import type { AnswerPlan, TestEndpoint } from './test-endpoint.js';

/** One check of a gateway with its result. */
export interface ProbeResult {
  readonly probe: string;
  readonly ok: boolean;
  readonly text: string;
  /** Settings that can be the cause, the likeliest first; empty of a probe that is ok. */
  readonly suspects: readonly string[];
  /** Whether another try would not help. */
  readonly isFinal?: boolean;
}

/** Tools and settings of the probes. */
export interface TestRun {
  readonly client: GatewayClient;
  readonly endpoint: TestEndpoint;
  readonly model: string;
  /** Seconds of the long answers. */
  readonly seconds: number;
  /** Requests at once. */
  readonly concurrency: number;
  /** Charged requests of the picker; undefined = its metrics were not given. */
  readonly charged: (() => Promise<number>) | undefined;
}

export function passed(probe: string, text: string): ProbeResult {
  return { probe, ok: true, text, suspects: [] };
}

export function failed(probe: string, text: string, suspects: readonly string[]): ProbeResult {
  return { probe, ok: false, text, suspects: [...new Set(suspects)] };
}

let last = 0;

/** An id that no other request has. */
function freshId(): string {
  return `${process.pid}-${++last}-${randomBytes(4).toString('hex')}`;
}

/** A chat request of about so many bytes. */
export function chatOf(model: string, bytes: number, stream = false): Buffer {
  const head = JSON.stringify({ model, stream, max_tokens: 16, messages: [{ role: 'user', content: '' }] });
  const content = randomBytes(Math.ceil(Math.max(0, bytes - head.length) / 2)).toString('hex');
  return Buffer.from(head.replace('"content":""', `"content":"${content}"`));
}

/** Sends one request for which the endpoint has a plan. */
export function exchange(
  { client, endpoint, model }: TestRun,
  plan: AnswerPlan,
  question: Partial<Question> = {},
): { readonly id: string; readonly answer: Promise<Answer>; readonly body: Buffer } {
  const id = freshId();
  const body = question.body ?? chatOf(model, 1_000, plan.pieces !== undefined);
  endpoint.expect(id, plan);
  return { id, body, answer: client.ask({ ...question, id, body }) };
}

const UNREACHED: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'there is no such host',
  EHOSTUNREACH: 'no way leads there',
  ENETUNREACH: 'no way leads there',
};

/** Reason why no gateway was reached at all; undefined = one was, or it is not known. */
export function unreached({ status, broken = '' }: Answer): string | undefined {
  const why = status === 0 ? UNREACHED[broken] : undefined;
  return why && `${why} (${broken}): start the gateway, or correct --gateway`;
}

/** An answer in few words, for a message. */
export function briefly({ status, text, broken }: Answer): string {
  const what = status === 0 ? 'no answer' : String(status);
  const said = text.trim().replaceAll(/\s+/g, ' ').slice(0, 100);
  return [
    what,
    ...(broken === undefined ? [] : [broken]),
    ...(status !== 200 && said !== '' ? [`"${said}"`] : []),
  ].join(', ');
}

/** The settings behind a failed answer, as far as status and text tell. */
export function suspectsOf({ status, text, broken }: Answer): readonly string[] {
  const flag = /--[a-z-]+/.exec(text)?.[0];
  if (flag !== undefined) return [flag];
  if (text.includes('picker overloaded')) return ['--shards', '--max-streams'];
  if (text.includes('connection timeout')) return ['connect_timeout'];
  switch (status) {
    case 408:
      return ['request_timeout', '--request-idle-timeout'];
    case 413:
      return ['per_connection_buffer_limit_bytes', 'max_request_bytes', 'request_body_mode'];
    case 500:
      return [
        'max_requests',
        'max_pending_requests',
        'message_timeout',
        'request_body_mode',
        'response_body_mode',
        'request_trailer_mode',
        'max_receive_message_length',
        'http2_protocol_options',
      ];
    case 503:
      return ['max_requests', 'max_pending_requests', 'max_connections'];
    case 504:
      return [
        'timeout',
        'message_timeout',
        'idle_timeout',
        'stream_idle_timeout',
        'per_try_timeout',
        'max_stream_duration',
      ];
    default:
      return broken === undefined
        ? []
        : ['timeout', 'max_stream_duration', 'idle_timeout', 'stream_idle_timeout', 'message_timeout'];
  }
}
