import { diagnosis } from '../../dist/tools/doctor/diagnosis.js';
import { readSamples } from '../../dist/tools/doctor/exposition.js';
import { decodeReply, responseBody, responseHeaders } from '../ingress/envoy-messages.ts';
import { collect, dialPicker, firstReply } from '../ingress/proxy-client.ts';
import { EnginePublisher } from '../kvevents/engine-publisher.ts';
import { RenderServer } from '../request/tokens/render-server.ts';
import { eventually } from '../tools/gateway/client.ts';
import { ask, metric, metricsPage, Setting, startPicker } from './serving.ts';

/** What a picker of which only the metrics page is read looks like to the doctor: severity, part and text. */
export async function doctorLines(metricsPort: number): Promise<readonly string[]> {
  const reading = {
    samples: readSamples(await metricsPage(metricsPort)),
    ...{ earlier: undefined, health: undefined, unreadable: undefined, waiting: undefined },
    ...{ otherPools: [], clock: undefined },
  };
  return diagnosis(reading).map(({ severity, about, text }) => `${severity} ${about}: ${text}`);
}

export const HOSTS = ['127.0.0.2', '127.0.0.3', '127.0.0.4'];
/** The render server makes a token of each letter. */
export const tokensOf = (prompt: string) => [...prompt].map((letter) => letter.charCodeAt(0));

/** A picker that follows the events of three engines; prompts have a token for each letter, blocks four of them. */
export async function serveTold(
  cleanups: (() => unknown)[],
  producer = '',
  plugins = ['precise-prefix-cache-producer', 'prefix-cache-scorer'],
) {
  const render = await RenderServer.start();
  cleanups.push(() => render.close());
  const first = await EnginePublisher.start(`tcp://${HOSTS[0]}:*`);
  const port = first.address.split(':').at(-1);
  const others = HOSTS.slice(1).map((host) => EnginePublisher.start(`tcp://${host}:${port}`));
  const engines = [first, ...(await Promise.all(others))];
  cleanups.push(() => engines.map((engine) => engine.close()));
  const parameters =
    `{tokenProcessorConfig: {blockSizeTokens: 4}, kvEventsConfig: {podDiscoveryConfig: {socketPort: ${port}}} ` +
    `${producer}}`;
  const lines = [
    `{type: token-producer, parameters: {modelName: m, vllm: {url: "${render.url}"}}}`,
    `{type: ${plugins[0]}, parameters: ${parameters}}`,
    ...(plugins.length === 1
      ? []
      : ['{type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}']),
  ];
  const setting = await Setting.create(
    HOSTS.map((address, index) => ({ name: `pod-${index}`, address, port: 1 })),
    `plugins:\n${lines.map((line) => `- ${line}\n`).join('')}schedulingProfiles: [{name: p, plugins: [{pluginRef: ` +
      `${plugins.at(-1)}}]}]\n`,
  );
  cleanups.push(() => setting.remove());
  const { picker, ports } = await startPicker([...setting.flags, '--shards=1']);
  cleanups.push(() => picker.stop(0));
  const client = dialPicker(ports.grpcPort);
  cleanups.push(() => client.close());
  const destination = async (prompt: string) => {
    const call = ask(client, prompt);
    const reply = decodeReply(await firstReply(call));
    call.cancel();
    return HOSTS.indexOf(reply.headers['x-gateway-destination-endpoint']!.split(':')[0]!);
  };
  /** A request with its whole answer, in which the engine tells so many tokens of the prompt. */
  const answered = async (prompt: string, promptTokens = prompt.length) => {
    const call = ask(client, prompt);
    await firstReply(call);
    const end = collect(call);
    call.write(responseHeaders({ ':status': '200', 'content-type': 'application/json' }));
    const usage = { prompt_tokens: promptTokens, completion_tokens: 1, total_tokens: promptTokens + 1 };
    call.write(responseBody(JSON.stringify({ usage }), true));
    call.end();
    await end;
  };
  const destinations = async (prompt: string) => {
    const seen: number[] = [];
    for (let i = 0; i < 4; i++) seen.push(await destination(prompt));
    return seen;
  };
  const count = (name: string, labels = '') => metric(ports.metricsPort, name, labels);
  /** Publishes until the picker has heard it. */
  const tell = (engine: number, ...events: readonly unknown[]) =>
    eventually('the message', async () => {
      const before = (await count('pointsman_kv_events_messages_total'))!;
      await engines[engine]!.send(events);
      return (await count('pointsman_kv_events_messages_total'))! > before;
    });
  return { destination, destinations, answered, count, tell, render, doctor: () => doctorLines(ports.metricsPort) };
}
