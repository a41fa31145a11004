import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply, requestBody, requestHeaders, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { collect } from '../ingress/proxy-client.ts';
import { chat, type FileEndpoint, metric, overConnection, Setting, startPicker } from './serving.ts';

const REVISION = 'disaggregatedset.x-k8s.io/revision';
const ROLE = 'disaggregatedset.x-k8s.io/role';
const endpoints: FileEndpoint[] = [
  ['a', 'prefill'],
  ['a', 'decode'],
  ['b', 'prefill'],
  ['b', 'decode'],
  ['c', 'decode'],
].map(([revision, role], index) => ({
  name: `pod-${index}`,
  address: `127.0.0.${index + 2}`,
  port: 9,
  labels: { [REVISION]: revision!, [ROLE]: role!, app: 'llm' },
}));

const PLUGINS = `plugins:
- type: request-attribute-reporter
  parameters:
    attributes:
    - key: {namespace: billing, name: cost}
      expression: usage.prompt_tokens + 2.0 * usage.completion_tokens
      condition: usage.total_tokens > 0
- type: destination-endpoint-served-verifier
- type: header-based-testing-filter
- type: disaggregatedset-rollout-screener
  parameters:
    scope: {labelSelector: app=llm}
    headerSelectors:
    - {name: revision, headerName: x-revision, labelKey: ${REVISION}, mode: strict}
    revisionGating: {mode: sum, requireRoles: {values: [prefill, decode]}}
- type: max-score-picker
`;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

describe('plugins of answers and of rollouts, over the wire', () => {
  it('plugins of answers and of rollouts, over the wire report, verify, select and screen', async () => {
    const setting = await Setting.create(endpoints, PLUGINS);
    cleanups.push(() => setting.remove());
    const { picker, ports } = await startPicker([...setting.flags, '--allow-experimental-plugins']);
    cleanups.push(() => picker.stop(0));
    const exchange = (headers: Readonly<Record<string, string>>) =>
      overConnection(ports.grpcPort, async (client) => {
        const call = client.process();
        const collected = collect(call);
        call.write(requestHeaders({ ':path': '/v1/chat/completions', ...headers }));
        call.write(requestBody(chat('hello')));
        call.write(responseHeaders({ ':status': '200', 'content-type': 'application/json' }));
        call.write(responseBody('{"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}', true));
        call.end();
        return (await collected).replies.map((reply) => decodeReply(reply));
      });

    const every = { 'test-epp-endpoint-selection': endpoints.map(({ address }) => address).join() };
    const replies = await exchange({ ...every, 'x-revision': 'b' });
    expect(replies[0]!.headers['x-gateway-destination-endpoint']).toMatch(/^127\.0\.0\.[45]:9$/);
    const answer = replies.find(({ kind }) => kind === 'responseHeaders')!.headers;
    expect(answer['x-revision']).toBe('b');
    expect(answer['x-conformance-test-served-endpoint']).toBe('fail: missing envoy lb metadata');
    expect(replies.find(({ kind }) => kind === 'responseBody')!.metadata).toEqual({ billing: { cost: 11 } });

    const one = await exchange({ 'test-epp-endpoint-selection': '127.0.0.5', 'x-revision': 'b' });
    expect(one[0]!.headers['x-gateway-destination-endpoint']).toBe('127.0.0.5:9');
    expect((await exchange({ ...every, 'x-revision': 'c' }))[0]!.status).toBe(503);
    expect((await exchange({ 'x-revision': 'b' }))[0]!.status).toBe(503);

    const share = 'llm_d_epp_disaggregatedset_revision_gating_share';
    for (const [revision, expected] of Object.entries({ a: 0.5, b: 0.5, c: 0 })) {
      expect(await metric(ports.metricsPort, share, `revision="${revision}"`)).toBe(expected);
    }
    const refused = 'llm_d_epp_disaggregatedset_strict_header_no_match_total';
    expect(await metric(ports.metricsPort, refused, 'selector="revision"')).toBe(1);
  });
});
