import { connect } from 'node:http2';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cachedDataVersionTag } from 'node:v8';
import { afterEach, describe, expect, it } from 'vitest';
import { decodeReply } from '../ingress/envoy-messages.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, askAndEnd, metric, overConnection, runToEnd, Setting, startPicker, startServe } from './serving.ts';

const ENDPOINTS = [{ name: 'server', port: 20_000 }];
const TRACES = [
  'pointsman_ledger_entries',
  'llm_d_epp_request_total',
  'inference_objective_request_total',
  'pointsman_overload_rejections_total',
  'pointsman_shard_body_slots',
  'pointsman_shard_held_bytes',
];

/** Ports that a picker says it serves on. */
function ports(log: string): { readonly grpcPort: number; readonly metricsPort: number } {
  return JSON.parse(log.split('\n').find((line) => line.includes('pointsman is serving'))!);
}

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function setting(profile?: string): Promise<Setting> {
  const made = await Setting.create(ENDPOINTS, profile);
  cleanups.push(() => made.remove());
  return made;
}

describe('--warm-up', () => {
  it('--warm-up leaves no trace of its requests, and the first real one is served as ever', async () => {
    const { flags } = await setting();
    const { picker, ports } = await startPicker([...flags, '--warm-up=300ms', '--shards=2']);
    cleanups.push(() => picker.stop(0));
    for (const name of TRACES) expect([name, (await metric(ports.metricsPort, name)) ?? 0]).toEqual([name, 0]);
    const decisions = await (await fetch(`http://127.0.0.1:${ports.metricsPort}/debug/decisions`)).json();
    expect(decisions).toEqual({ decisions: [] });
    const { replies } = await overConnection(ports.grpcPort, (client) => askAndEnd(client, 'hello'));
    const reply = decodeReply(replies[0]!);
    expect(reply.headers['x-gateway-destination-endpoint']).toBe('127.0.0.1:20000');
  });

  it('--idle-warm-up begins once the picker is ready and nothing comes, and leaves no trace of its requests', async () => {
    const { flags } = await setting();
    const serve = await startServe([...flags, '--idle-warm-up=1s', '--shards=2']);
    cleanups.push(() => serve.kill());
    const lines = () => serve.log().match(/.*--idle-warm-up.*/g) ?? [];
    await eventually('both shards have rehearsed', () => lines().length === 2);
    for (const line of lines()) {
      expect(serve.log().indexOf('pointsman is serving')).toBeLessThan(serve.log().indexOf(line));
      expect((JSON.parse(line) as { pieces: number }).pieces).toBeGreaterThan(50);
    }
    const { metricsPort, grpcPort } = ports(serve.log());
    // Shards tell what they hold once a second, and may have told it during the rehearsal.
    const isZero = async (name: string) => ((await metric(metricsPort, name)) ?? 0) === 0;
    for (const name of TRACES) await eventually(`${name} is zero`, () => isZero(name));
    const decisions = await (await fetch(`http://127.0.0.1:${metricsPort}/debug/decisions`)).json();
    expect(decisions).toEqual({ decisions: [] });
    expect(serve.log().match(/"level":"(warn|error)".*rehears/g)).toBeNull();
    const { replies } = await overConnection(grpcPort, (client) => askAndEnd(client, 'hello'));
    expect(decodeReply(replies[0]!).headers['x-gateway-destination-endpoint']).toBe('127.0.0.1:20000');
  });

  it('a rehearsal changes a flag of V8, by which finished compilations are freed at once, and puts it back', async () => {
    const { flags } = await setting();
    const before = cachedDataVersionTag();
    const tags = new Set<number>();
    const look = setInterval(() => tags.add(cachedDataVersionTag()), 5);
    cleanups.push(() => clearInterval(look));
    const { picker } = await startPicker([...flags, '--warm-up=300ms']);
    cleanups.push(() => picker.stop(0));
    // Another Node.js may not have the flag, and is left as it is.
    expect(tags.size).toBe(/^v2[45]\./.test(process.version) ? 2 : 1);
    expect(cachedDataVersionTag()).toBe(before);
  });

  it('seeded decisions are the same with and without --idle-warm-up', async () => {
    const made = await Setting.create([20_000, 20_001, 20_002, 20_003].map((port) => ({ name: `s${port}`, port })));
    cleanups.push(() => made.remove());
    const decisions = async (warmUp: string) => {
      const serve = await startServe([...made.flags, '--seed=7', `--idle-warm-up=${warmUp}`]);
      cleanups.push(() => serve.kill());
      if (warmUp !== '0s') await eventually('it has rehearsed', () => serve.log().includes('has compiled its code'));
      return overConnection(serve.grpcPort, async (client) => {
        const picked: (string | undefined)[] = [];
        for (let i = 0; i < 48; i++) {
          const { replies } = await askAndEnd(client, `${i} has words of its own`);
          picked.push(decodeReply(replies[0]!).headers['x-gateway-destination-endpoint']);
        }
        return picked;
      });
    };
    const without = await decisions('0s');
    expect(new Set(without).size).toBe(4);
    expect(await decisions('300ms')).toEqual(without);
  });

  it('a client that has set its connection up and sends PING does not hold --idle-warm-up up', async () => {
    const { flags } = await setting();
    const serve = await startServe([...flags, '--idle-warm-up=100ms']);
    cleanups.push(() => serve.kill());
    const client = connect(`http://127.0.0.1:${serve.grpcPort}`).on('error', () => undefined);
    const words = setInterval(() => client.ping(() => undefined), 20);
    cleanups.push(() => client.destroy());
    cleanups.push(() => clearInterval(words));
    const line = () => /.*has compiled its code.*/.exec(serve.log())?.[0];
    await eventually('it has rehearsed', () => line() !== undefined);
    expect((JSON.parse(line()!) as { ms: number }).ms).toBeGreaterThanOrEqual(100);
  });

  it('a request that is open holds --idle-warm-up up, which ends when the request has ended', async () => {
    const { flags } = await setting();
    const serve = await startServe([...flags, '--idle-warm-up=1s']);
    cleanups.push(() => serve.kill());
    const hasRehearsed = () => serve.log().includes('has compiled its code');
    await overConnection(serve.grpcPort, async (client) => {
      const call = ask(client, 'hello');
      await pause(2_500);
      expect(hasRehearsed()).toBe(false);
      call.end();
      await eventually('it has rehearsed', hasRehearsed);
    });
  });

  it('--idle-warm-up is left out with a hook plugin, and the log says so', async () => {
    const profile = 'plugins:\n- type: least-busy-scheduler\n';
    const { flags } = await setting(profile);
    const plugin = fileURLToPath(new URL('../../examples/plugins/least-busy-scheduler.js', import.meta.url));
    const serve = await startServe([...flags, `--plugin=${plugin}`, '--idle-warm-up=300ms']);
    cleanups.push(() => serve.kill());
    await eventually('the log says it', () => serve.log().includes('hook plugins would see a rehearsal'));
    expect(serve.log()).not.toContain('has compiled its code');
  });

  it('--idle-warm-up=0s plays nothing', async () => {
    const { flags } = await setting();
    const serve = await startServe([...flags, '--idle-warm-up=0s']);
    cleanups.push(() => serve.kill());
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(serve.log()).not.toContain('--idle-warm-up');
  });

  it('--warm-up plays whole exchanges before the picker is ready', async () => {
    const { flags } = await setting();
    const serve = await startServe([...flags, '--warm-up=300ms']);
    cleanups.push(() => serve.kill());
    const line = serve
      .log()
      .split('\n')
      .find((text) => text.includes('--warm-up'))!;
    expect(serve.log().indexOf(line)).toBeLessThan(serve.log().indexOf('pointsman is serving'));
    expect((JSON.parse(line) as { pieces: number }).pieces).toBeGreaterThan(20);
  });

  it('--warm-up is bounded: more than 3 s is refused', async () => {
    const { code, stderr } = await runToEnd(['serve', '--warm-up=4s']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('--warm-up: must be at most 3s')]);
  });
});
