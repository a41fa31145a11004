// What traces cost a request: the choice at its headers with the header for the model server, and a whole record.
import { decodeProcessRequest } from '../dist/src/ingress/codec/process-request.js';
import { RequestTracer, UNSAMPLED_ROOT } from '../dist/src/ingress/tracing/request-tracer.js';
import { requestHeaders } from '../test/ingress/envoy-messages.ts';
import type { Bench } from './bench.ts';

const LOOP = 1_000;
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

/** The headers that Envoy sends with a request of a usual client. */
function headers(traceparent: string | undefined) {
  const bytes = requestHeaders({
    ':method': 'POST',
    ':path': '/v1/chat/completions',
    ':authority': 'models.example.com',
    ':scheme': 'https',
    'content-type': 'application/json',
    'content-length': '4000',
    accept: '*/*',
    authorization: 'Bearer 0123456789abcdef0123456789abcdef',
    'user-agent': 'OpenAI/Python 1.99.0',
    'x-request-id': '7d9f9b0e-9f35-4ab5-b4d3-3a5c1c1d2e3f',
    'x-forwarded-for': '10.0.0.1',
    'x-forwarded-proto': 'https',
    'x-envoy-expected-rq-timeout-ms': '15000',
    ...(traceparent === undefined ? {} : { traceparent }),
  });
  return decodeProcessRequest(bytes, 0, bytes.length).headers;
}

function choice(ratio: number, traceparent: string | undefined): Bench['setup'] {
  return async () => {
    const tracer = new RequestTracer(
      { parentBased: true, ratio, propagates: true },
      () => undefined,
      () => performance.now(),
    );
    const of = headers(traceparent);
    let bytes = 0;
    return {
      opsPerRun: LOOP,
      run: () => {
        for (let i = 0; i < LOOP; i++) bytes += tracer.header(tracer.begin(of, 0))?.length ?? 0;
        if (ratio > 0 && traceparent === undefined && bytes === 0) throw new Error('no header was made');
      },
    };
  };
}

async function whole(): Promise<Awaited<ReturnType<Bench['setup']>>> {
  let records = 0;
  const count = () => {
    records++;
  };
  const tracer = new RequestTracer({ parentBased: true, ratio: 1, propagates: true }, count, () => performance.now());
  const of = headers(undefined);
  const usage = { promptTokens: 1_000, completionTokens: 20, totalTokens: 1_020, cachedTokens: 0 };
  return {
    opsPerRun: LOOP,
    run: () => {
      for (let i = 0; i < LOOP; i++) {
        const trace = tracer.begin(of, 0);
        if (trace === UNSAMPLED_ROOT || trace === undefined) throw new Error('a request was not sampled');
        tracer.header(trace);
        trace.decided('id', { first: i, count: 1 }, 1, 2);
        trace.head(200, 3);
        trace.firstByte(4);
        trace.answered(usage, 4_000, 5);
        trace.close(undefined, 6);
      }
      if (records === 0) throw new Error('no record was made');
    },
  };
}

export const benches: readonly Bench[] = [
  { name: 'tracing/root-at-1-percent', setup: choice(0.01, undefined) },
  { name: 'tracing/unsampled-parent', setup: choice(0.01, `00-${TRACE}-${SPAN}-00`) },
  { name: 'tracing/sampled-request', setup: whole },
];
