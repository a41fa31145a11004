import { afterEach, describe, expect, it, vi } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { checkHealth, dialPicker, firstReply, type ProxyClient } from '../ingress/proxy-client.ts';
import { ask, type ServeProcess, Setting, startServe } from '../picker/serving.ts';

/** gRPC status of an answer that did not come in time. */
const DEADLINE_EXCEEDED = 4;
const FAULTS = new URL('./control-thread-faults.js', import.meta.url);
const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A picker whose control thread has this fault at SIGUSR2. */
async function startWith(fault: 'exception' | 'rejection' | 'hang'): Promise<ServeProcess> {
  const setting = await Setting.create([{ name: 'server', port: 20_000 }]);
  cleanups.push(() => setting.remove());
  vi.stubEnv('NODE_OPTIONS', `--import=${FAULTS}`);
  vi.stubEnv('POINTSMAN_TEST_FAULT', fault);
  const serve = await startServe([...setting.flags, '--shards=2']).finally(() => vi.unstubAllEnvs());
  cleanups.push(() => serve.kill());
  return serve;
}

function dial(port: number): ProxyClient {
  const client = dialPicker(port);
  cleanups.push(() => client.close());
  return client;
}

async function placed(client: ProxyClient, prompt: string): Promise<string> {
  const call = ask(client, prompt);
  const { kind } = decodeReply(await firstReply(call));
  call.end();
  return kind;
}

describe('the control thread', () => {
  it.each([
    ['an exception that nothing catches', 'exception'],
    ['a rejection that nothing awaits', 'rejection'],
  ] as const)(
    'the control thread with %s ends the process with exit code 1 and a line that names it',
    async (_kind, fault) => {
      const serve = await startWith(fault);
      expect(await placed(dial(serve.grpcPort), 'before')).toBe('requestHeaders');
      serve.child.kill('SIGUSR2');
      expect(await serve.ended).toBe(1);
      expect(serve.log()).toContain('pointsman: the control thread has failed: Error: broken on purpose\n    at ');
    },
  );

  it('the control thread that hangs leaves requests to the shards, and the probe of its health gets no answer', async () => {
    const serve = await startWith('hang');
    const client = dial(serve.grpcPort);
    expect(await placed(client, 'before')).toBe('requestHeaders');
    expect(await checkHealth(dial(serve.healthPort), 'liveness')).toBe('SERVING');
    serve.child.kill('SIGUSR2');
    expect(await checkHealth(dial(serve.healthPort), 'liveness')).toBe(DEADLINE_EXCEEDED);
    for (let i = 0; i < 20; i++) expect(await placed(client, `while it hangs ${i}`)).toBe('requestHeaders');
  });
});
