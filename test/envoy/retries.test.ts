// What the shipped configurations spare clients: connections that engines close, and servers that are gone.
import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { answerAtOnce, type Backend, type Behaviour, startBackend } from '../tools/gateway/backend.ts';
import { pause } from '../tools/gateway/callers.ts';
import { ask, chatBody } from '../tools/gateway/client.ts';
import { skipReason } from './envoy.ts';
import { startRetryingEnvoy } from './retrying-envoy.ts';
import { startTestBed, type TestBed } from './test-bed.ts';

/** Idle time after which vLLM's server closes a connection, and one at which both ends may use it at once. */
const KEPT_MS = 4_500;

/** Breaks a connection off that is used again after so long, as when its end and a request have crossed. */
function impatient(): Behaviour {
  const usedMs = new WeakMap<Socket, number>();
  return (_request, response) => {
    const socket = response.socket!;
    const idleMs = performance.now() - (usedMs.get(socket) ?? performance.now());
    if (idleMs > KEPT_MS) return void socket.destroy();
    response.on('finish', () => usedMs.set(socket, performance.now()));
    response.setHeader('content-type', 'application/json');
    response.end('{"object":"chat.completion","model":"m","choices":[]}');
  };
}

const digestOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

const LISTS = `plugins:
- type: random-picker
  parameters: {maxNumOfEndpoints: 3}
`;

/** Prompts go where most of them is cached; a header names the only endpoint of those that come first. */
const BY_CACHE = `plugins:
- {type: header-based-testing-filter, parameters: {withoutHeader: all}}
- {type: prefix-cache-scorer}
- {type: max-score-picker, parameters: {maxNumOfEndpoints: 3}}
schedulingProfiles:
- name: default
  plugins: [{pluginRef: header-based-testing-filter}, {pluginRef: prefix-cache-scorer}, {pluginRef: max-score-picker}]
`;

describe.skipIf(skipReason !== '')(`the destinations of a list${skipReason}`, () => {
  it('a server that breaks off is followed by another host that has most of the prompt', async () => {
    let broken = '';
    const breaking: Behaviour = (received, response, backend) => {
      if (backend.name === broken) response.socket!.destroy();
      else answerAtOnce(received, response, backend);
    };
    const start = (name: string, address: string) => startBackend(name, breaking, 0, address);
    const best = await start('best', '127.0.0.1');
    const sameHost = await start('same-host', '127.0.0.1');
    const otherHost = await start('other-host', '127.0.0.2');
    const servers = [best, sameHost, otherHost, await start('empty', '127.0.0.2')];
    const bed = await startTestBed(servers, {
      profile: BY_CACHE,
      startEnvoy: (pickerPort) => startRetryingEnvoy({ pickerPort, servers, tellsServed: false }),
    });
    try {
      const prompt = (parts: number) => 'a conversation that goes on '.repeat(100 * parts);
      const send = async (parts: number, to?: Backend) => {
        const chosen = to === undefined ? {} : { 'test-epp-endpoint-selection': `${to.address}:${to.port}` };
        const { status, headers } = await ask(bed.envoy.port, { body: chatBody(prompt(parts)), headers: chosen });
        return [status, headers['x-inference-pod']];
      };
      expect(await send(3, best)).toEqual([200, 'best']);
      expect(await send(2, sameHost)).toEqual([200, 'same-host']);
      expect(await send(1, otherHost)).toEqual([200, 'other-host']);
      broken = 'best';
      expect(await send(3)).toEqual([200, 'other-host']);
      expect(servers.map(({ received }) => received.length)).toEqual([2, 1, 2, 0]);
    } finally {
      await bed.stop();
    }
  });
});

describe.skipIf(skipReason !== '')(`the shipped configurations spare clients${skipReason}`, () => {
  let bed: TestBed<Backend> | undefined;
  afterEach(async () => {
    await bed?.stop();
    bed = undefined;
  });

  const backends = (...names: readonly string[]) => Promise.all(names.map((name) => startBackend(name, impatient())));

  it.each(['envoy.yaml', 'envoy-fail-open.yaml'] as const)(
    'a request on a connection that the engine is about to close: %s',
    async (configuration) => {
      bed = await startTestBed(await backends('s0'), { configuration });
      const status = async () => (await ask(bed!.envoy.port, { body: chatBody('hello') })).status;
      expect(await status()).toBe(200);
      await pause(KEPT_MS + 200);
      expect(await status()).toBe(200);
    },
  );

  it.each(['envoy.yaml', 'envoy-fail-open.yaml'] as const)('no byte of long prompts: %s', async (configuration) => {
    const told: Behaviour = ({ body }, response) => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ object: 'chat.completion', model: 'm', choices: [], digest: digestOf(body) }));
    };
    bed = await startTestBed(await Promise.all(['s0', 's1'].map((name) => startBackend(name, told))), {
      configuration,
    });
    const bodies = Array.from({ length: 40 }, (_, i) => chatBody(`${i} `.repeat(10_000 * (1 + (i % 20)))));
    const answers = await Promise.all(bodies.map((body) => ask(bed!.envoy.port, { body })));
    const digests = answers.map(({ body }) => (JSON.parse(body.toString()) as { digest: string }).digest);
    expect(digests).toEqual(bodies.map((body) => digestOf(Buffer.from(body))));
  });

  it('an endpoint that is gone, where the cluster knows the others', async () => {
    const servers = await backends('s0', 's1', 's2');
    bed = await startTestBed(servers, { configuration: 'envoy-fail-open.yaml', profile: LISTS });
    await servers[0]!.stop();
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => ask(bed!.envoy.port, { body: chatBody('hello') })),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  });
});
