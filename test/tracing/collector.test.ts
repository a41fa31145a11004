import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { decodeReply, requestBody, requestHeaders, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { ask, metric, Setting, startPicker } from '../picker/serving.ts';
import { eventually } from '../tools/gateway/client.ts';
import { type CollectedSpan, Collector, skipReason } from './collector.ts';

const PROMPT = 'a prompt that must not be told '.repeat(100);
const USAGE =
  '{"prompt_tokens":800,"completion_tokens":2,"total_tokens":802,"prompt_tokens_details":{"cached_tokens":64}}';

const PROFILE = `plugins:
- {type: label-selector-filter, name: not-old, parameters: {matchExpressions: [{key: tier, operator: \
NotIn, values: [old]}]}}
- {type: queue-scorer}
- {type: prefix-cache-scorer}
- {type: max-score-picker}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: not-old}, {pluginRef: queue-scorer, weight: 2}, {pluginRef: prefix-cache-scorer, weight: \
3}, {pluginRef: max-score-picker}]
`;

let collector: Collector;
const cleanups: (() => unknown)[] = [];

async function serve(env: Readonly<Record<string, string>>, flags: readonly string[] = []) {
  const setting = await Setting.create(
    [
      { name: 'a', port: 21_111 },
      { name: 'b', port: 21_112 },
      { name: 'old', port: 21_113, labels: { tier: 'old' } },
    ],
    PROFILE,
  );
  cleanups.push(() => setting.remove());
  const all = { OTEL_BSP_SCHEDULE_DELAY: '50', OTEL_TRACES_SAMPLER: 'always_on', ...env };
  const { picker, ports } = await startPicker([...setting.flags, '--pool-name=llama', ...flags], undefined, all);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  return { picker, client, metricsPort: ports.metricsPort };
}

/** A request that is answered with a streamed answer of 2 tokens. @returns the headers that go to the model server */
async function answered(client: ProxyClient, headers: Readonly<Record<string, string>>) {
  const call = ask(client, PROMPT, headers);
  const reply = decodeReply(await firstReply(call));
  call.write(responseHeaders({ ':status': '200', 'content-type': 'text/event-stream' }));
  call.write(responseBody('data: {"choices":[]}\n\n', false));
  call.write(responseBody(`data: {"choices":[],"usage":${USAGE}}\n\ndata: [DONE]\n\n`, true));
  call.end();
  return reply.headers;
}

/** A client's context of a trace that is sampled. */
function clientContext(flags = '01') {
  const traceId = randomBytes(16).toString('hex');
  const spanId = randomBytes(8).toString('hex');
  return { traceId, spanId, traceparent: `00-${traceId}-${spanId}-${flags}` };
}

function named(spans: readonly CollectedSpan[], name: string): CollectedSpan {
  const found = spans.filter((span) => span.name === name);
  expect(found, `spans with the name ${name}`).toHaveLength(1);
  return found[0]!;
}

describe.skipIf(skipReason !== '')(`traces in an OpenTelemetry collector${skipReason}`, () => {
  beforeAll(async () => {
    collector = await Collector.start();
  });
  afterAll(() => collector?.stop());
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  const overGrpc = () => ({ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.grpcPort}` });
  const overHttp = () => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.httpPort}`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
  });

  it.each([
    ['OTLP over gRPC', overGrpc],
    ['OTLP over gRPC with gzip', () => ({ ...overGrpc(), OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' })],
    ['OTLP over HTTP', overHttp],
    ['OTLP over HTTP with gzip', () => ({ ...overHttp(), OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' })],
  ])('%s brings the spans of a request in the trace of its client', async (_name, env) => {
    const { client } = await serve(env(), ['--shards=2']);
    const context = clientContext();
    const sent = await answered(client, { 'x-request-id': 'req-1', traceparent: context.traceparent });
    const spans = await collector.trace(context.traceId, 'gateway.request');
    const root = named(spans, 'gateway.request');
    expect(root).toMatchObject({ kind: 'Server', parentId: context.spanId, status: 'Unset' });
    expect(sent.traceparent).toBe(`00-${context.traceId}-${root.spanId}-01`);
    const orchestration = named(spans, 'gateway.request_orchestration');
    expect(orchestration).toMatchObject({ kind: 'Server', parentId: root.spanId });
    const profile = named(spans, 'run_scheduler_profile');
    expect(profile.parentId).toBe(orchestration.spanId);
    for (const name of ['filter_endpoints', 'llm_d.epp.scoring', 'pick_endpoints']) {
      expect(named(spans, name)).toMatchObject({ kind: 'Internal', parentId: profile.spanId });
    }
    expect(named(spans, 'gateway.response').parentId).toBe(root.spanId);
    for (const span of spans) {
      expect(span.start, span.name).toBeGreaterThanOrEqual(root.start - 1);
      expect(span.end, span.name).toBeGreaterThanOrEqual(span.start);
      expect(span.end, span.name).toBeLessThanOrEqual(root.end + 1);
    }
  });

  it('the spans carry the attributes of llm-d-router and of gen_ai, and nothing of the prompt', async () => {
    const { client } = await serve({ ...overGrpc(), OTEL_RESOURCE_ATTRIBUTES: 'k8s.pod.name=epp-0' });
    const { traceparent, traceId } = clientContext();
    const headers = { 'x-request-id': 'req-2', 'x-llm-d-inference-fairness-id': 'tenant-a', traceparent };
    const sent = await answered(client, headers);
    const spans = await collector.trace(traceId, 'gateway.request');
    const root = named(spans, 'gateway.request');
    expect(root.resource).toMatchObject({ 'service.name': 'Str(llm-d-epp)', 'k8s.pod.name': 'Str(epp-0)' });
    expect(root.attributes).toMatchObject({
      'gen_ai.operation.name': 'Str(chat)',
      'gen_ai.request.id': 'Str(req-2)',
      'gen_ai.request.model': 'Str(m)',
      'gen_ai.usage.input_tokens': 'Int(800)',
      'gen_ai.usage.output_tokens': 'Int(2)',
      'gen_ai.usage.cache_read.input_tokens': 'Int(64)',
      'gen_ai.latency.time_to_first_token': expect.stringMatching(/^Double\(/),
      'http.response.status_code': 'Int(200)',
      'pointsman.pool': 'Str(llama)',
      'pointsman.endpoint.address': `Str(${sent['x-gateway-destination-endpoint']})`,
      'pointsman.fairness_id': 'Str(tenant-a)',
    });
    expect(named(spans, 'gateway.request_orchestration').attributes).toMatchObject({
      target_model: 'Str(m)',
      request_prio: 'Int(0)',
    });
    expect(named(spans, 'run_scheduler_profile').attributes).toEqual({
      'llm_d.epp.scheduling.profile.name': 'Str(default)',
    });
    expect(named(spans, 'filter_endpoints').attributes).toMatchObject({
      'llm_d.epp.filter.candidate_endpoints': 'Int(3)',
      'llm_d.epp.filter.filtered_endpoints': 'Int(2)',
      'gen_ai.request.id': 'Str(req-2)',
    });
    expect(named(spans, 'llm_d.epp.scoring').attributes).toMatchObject({ 'llm_d.epp.scorer.count': 'Int(2)' });
    expect(named(spans, 'llm_d.epp.scorer.prefix-cache-scorer').attributes).toMatchObject({
      'llm_d.epp.scorer.weight': 'Double(3)',
      'llm_d.epp.scorer.score.max': 'Double(0)',
    });
    expect(named(spans, 'pick_endpoints').attributes).toMatchObject({
      'llm_d.epp.picker.candidate_endpoints': 'Int(2)',
      'llm_d.epp.picker.top_endpoints': expect.stringContaining('default/a'),
    });
    expect(JSON.stringify(spans)).not.toContain('must not be told');
  });

  it('a refused request is an error with its code', async () => {
    const { client } = await serve(overGrpc());
    const { traceparent, traceId } = clientContext();
    const call = client.process();
    call.on('error', () => undefined);
    call.write(requestHeaders({ ':path': '/v1/chat/completions', traceparent }));
    call.write(requestBody('{'));
    await firstReply(call);
    const spans = await collector.trace(traceId, 'gateway.request');
    for (const name of ['gateway.request', 'gateway.request_orchestration']) {
      expect(named(spans, name)).toMatchObject({ status: 'Error', statusMessage: 'BadRequest' });
    }
    expect(named(spans, 'gateway.request').attributes).toMatchObject({
      'error.type': 'Str(BadRequest)',
      'http.response.status_code': 'Int(400)',
    });
  });

  it('the traces that are under way are exported before the picker ends', async () => {
    const { picker, client } = await serve({ ...overGrpc(), OTEL_BSP_SCHEDULE_DELAY: '3600000' });
    const { traceparent, traceId } = clientContext();
    await answered(client, { traceparent });
    await picker.stop(1_000);
    const spans = await collector.trace(traceId, 'gateway.request');
    expect(spans.map(({ name }) => name)).toContain('run_scheduler_profile');
  });

  it('the metrics count exported spans', async () => {
    const { client, metricsPort } = await serve(overGrpc());
    const { traceparent, traceId } = clientContext();
    await answered(client, { traceparent });
    const spans = await collector.trace(traceId, 'gateway.request');
    const exported = () => metric(metricsPort, 'pointsman_trace_spans_total', 'outcome="exported"');
    await eventually('the spans are counted', async () => ((await exported()) ?? 0) >= spans.length);
  });
});
