import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeProcessRequest } from '../../dist/src/ingress/codec/process-request.js';
import { RequestTrace } from '../../dist/src/ingress/tracing/request-trace.js';
import { RequestTracer, UNSAMPLED_ROOT } from '../../dist/src/ingress/tracing/request-tracer.js';
import { TraceIds } from '../../dist/src/ingress/tracing/trace-ids.js';
import { parseTraceParent, sampledTraceParent } from '../../dist/src/ingress/tracing/trace-parent.js';
import { requestHeaders } from '../ingress/envoy-messages.ts';

const hex = (digits: number) => fc.stringMatching(new RegExp(`^[0-9a-f]{${digits - 1}}[1-9a-f]$`));
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

function headersOf(traceparent: string | undefined) {
  const bytes = requestHeaders(traceparent === undefined ? {} : { traceparent });
  return decodeProcessRequest(bytes, 0, bytes.length).headers;
}

function begin(ratio: number, traceparent: string | undefined, parentBased = true, propagates = true) {
  const tracer = new RequestTracer(
    { ratio, parentBased, propagates },
    () => {},
    () => 0,
  );
  const begun = tracer.begin(headersOf(traceparent), 0);
  return { begun, header: tracer.header(begun)?.toString('latin1') };
}

describe('the traceparent header', () => {
  it('a header that is written is read back', () => {
    fc.assert(
      fc.property(hex(32), hex(16), (traceId, spanId) => {
        const header = sampledTraceParent(traceId, spanId);
        expect(parseTraceParent(header)).toEqual({ traceId, spanId, sampled: true });
      }),
    );
  });

  it.each([
    ['', 'empty'],
    [`00-${TRACE}-${SPAN}`, 'cut off'],
    [`ff-${TRACE}-${SPAN}-01`, 'of the version that is forbidden'],
    [`00-${'0'.repeat(32)}-${SPAN}-01`, 'without a trace'],
    [`00-${TRACE}-${'0'.repeat(16)}-01`, 'without a span'],
    [`00-${TRACE.toUpperCase()}-${SPAN}-01`, 'in capitals'],
    [`00-${TRACE}-${SPAN}-01-more`, 'of version 00 with more'],
  ])('%j is %s and counts as absent', (header) => {
    expect(parseTraceParent(header)).toBeUndefined();
  });

  it('a header of a later version may have more', () => {
    expect(parseTraceParent(`01-${TRACE}-${SPAN}-01-more`)).toEqual({ traceId: TRACE, spanId: SPAN, sampled: true });
  });
});

describe('sampling of requests', () => {
  it('a sampled trace of the client is continued whatever the ratio', () => {
    const { begun, header } = begin(0, `00-${TRACE}-${SPAN}-01`);
    expect(begun).toBeInstanceOf(RequestTrace);
    expect(header).toMatch(new RegExp(`traceparent.*00-${TRACE}-[0-9a-f]{16}-01`, 's'));
    expect(header).not.toContain(SPAN);
  });

  it.each(['00', '02', 'fe'])(
    'a trace of the client with the flags %s goes on as it is whatever the ratio',
    (flags) => {
      expect(begin(1, `00-${TRACE}-${SPAN}-${flags}`)).toEqual({ begun: undefined, header: undefined });
    },
  );

  it.each(['01', '0f', 'ff'])('a trace of the client with the flags %s is continued', (flags) => {
    expect(begin(0, `00-${TRACE}-${SPAN}-${flags}`).begun).toBeInstanceOf(RequestTrace);
  });

  it('the ratio decides by the id of the trace where parents do not', () => {
    const low = `${TRACE.slice(0, 16)}0000000000000001`;
    const high = `${TRACE.slice(0, 16)}ffffffffffffffff`;
    expect(begin(0.5, `00-${low}-${SPAN}-00`, false).begun).toBeInstanceOf(RequestTrace);
    expect(begin(0.5, `00-${high}-${SPAN}-01`, false).begun).toBeUndefined();
  });

  it('a header that is not valid is replaced', () => {
    const { begun, header } = begin(1, 'nonsense');
    expect(begun).toBeInstanceOf(RequestTrace);
    expect(header).toMatch(/00-[0-9a-f]{32}-[0-9a-f]{16}-01/);
  });

  it('a request without a trace that is not chosen tells those behind it not to sample either', () => {
    const { begun, header } = begin(0, undefined);
    expect(begun).toBe(UNSAMPLED_ROOT);
    expect(header).toMatch(/00-[0-9a-f]{32}-[0-9a-f]{16}-00/);
  });

  it('no header is read or written without a propagator', () => {
    expect(begin(1, `00-${TRACE}-${SPAN}-00`, true, false).header).toBeUndefined();
    expect(begin(0, undefined, true, false)).toEqual({ begun: undefined, header: undefined });
  });

  it('ids of traces agree with a sampler of the same ratio', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.001, max: 0.999, noNaN: true }), (ratio) => {
        const ids = new TraceIds(ratio);
        const sampled = ids.trace();
        const unsampled = /00-([0-9a-f]{32})-[0-9a-f]{16}-00/.exec(ids.unsampledHeader().toString('latin1'))![1]!;
        expect(sampled).toMatch(/^[0-9a-f]{32}$/);
        expect([ids.takes(sampled), ids.takes(unsampled)]).toEqual([true, false]);
      }),
    );
  });

  it('about the given share of requests is chosen, and ids do not repeat', () => {
    const ids = new TraceIds(0.25);
    let chosen = 0;
    for (let i = 0; i < 40_000; i++) if (ids.draw()) chosen++;
    expect(chosen / 40_000).toBeCloseTo(0.25, 1);
    expect(new Set(Array.from({ length: 1_000 }, () => ids.trace())).size).toBe(1_000);
    const headers = Array.from({ length: 1_000 }, () => ids.unsampledHeader().toString('latin1'));
    expect(new Set(headers).size).toBe(1_000);
  });
});
