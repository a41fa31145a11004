import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Setting, startPicker } from '../picker/serving.ts';
import { type Backend, startBackend } from '../tools/gateway/backend.ts';
import { ask, chatBody } from '../tools/gateway/client.ts';
import { skipReason, startEnvoy } from './envoy.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const CONTEXT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-(0[01])$/;
/** Nothing listens there: exports fail, which no request feels. */
const EXPORTER = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' };

describe.skipIf(skipReason !== '')(`the trace context behind Envoy${skipReason}`, () => {
  let backend: Backend;
  const cleanups: (() => unknown)[] = [];
  beforeAll(async () => {
    backend = await startBackend('s0');
  });
  afterAll(() => backend?.stop());
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  /**
   * Sends a request through an Envoy and a picker.
   * @returns `traceparent` of the model server; several are joined by a comma
   */
  async function received(env: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>>) {
    const setting = await Setting.create([{ name: 's0', port: backend.port }]);
    cleanups.push(() => setting.remove());
    const { picker, ports } = await startPicker(setting.flags, undefined, env);
    cleanups.push(() => picker.stop(0));
    const envoy = await startEnvoy('envoy.yaml', ports.grpcPort);
    cleanups.push(() => envoy.stop());
    const answer = await ask(envoy.port, { body: chatBody('where am I?'), headers });
    expect(answer.status).toBe(200);
    return backend.received.at(-1)!.headers.traceparent;
  }

  it('a sampled trace of the client goes on with the span of the picker as parent, in one header', async () => {
    const context = await received(EXPORTER, { traceparent: `00-${TRACE}-${SPAN}-01` });
    const [, trace, span, flags] = CONTEXT.exec(String(context)) ?? [];
    expect([trace, flags]).toEqual([TRACE, '01']);
    expect(span).not.toBe(SPAN);
  });

  it('a trace of the client that is not sampled goes on as it is', async () => {
    const own = `00-${TRACE}-${SPAN}-00`;
    expect(await received(EXPORTER, { traceparent: own })).toBe(own);
  });

  it.each([
    ['1', '01'],
    ['0', '00'],
  ])('a request without a trace gets one, at the ratio %s with the flags %s', async (ratio, flags) => {
    const context = await received({ ...EXPORTER, OTEL_TRACES_SAMPLER_ARG: ratio }, {});
    expect(CONTEXT.exec(String(context))?.[3]).toBe(flags);
  });

  it.each([[{ traceparent: `00-${TRACE}-${SPAN}-01` }], [{}]])(
    'a picker without traces leaves the headers %j alone',
    async (headers: { traceparent?: string }) => {
      expect(await received({}, headers)).toBe(headers.traceparent);
    },
  );
});
