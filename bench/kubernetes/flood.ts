import { setTimeout as pause } from 'node:timers/promises';
import { plainKubeconfig, startObservedPicker, startStandInProcess } from './processes.ts';

const PODS = 20_000;
const CHANGES_PER_SECOND = 2_000;
const SECONDS = 15;
const EVERY_MS = 100;

/**
 * Milliseconds of each request for the page of metrics of a picker, one a time, from its start on: 20,000 pods, more
 * than it may have, and 2,000 changes of them a second.
 */
export async function metricsTimesInFlood(): Promise<readonly number[]> {
  const server = await startStandInProcess(PODS);
  const kubeconfig = plainKubeconfig(server.url);
  const source = ['--endpoint-selector=app=vllm', '--endpoint-target-ports=8000', '--pool-namespace=llm'];
  const picker = await startObservedPicker(kubeconfig.file, source);
  server.order({ kind: 'churn', perSecond: CHANGES_PER_SECOND });
  const times: number[] = [];
  const end = performance.now() + SECONDS * 1_000;
  while (performance.now() < end) {
    const began = performance.now();
    await (await fetch(`http://127.0.0.1:${picker.metricsPort}/metrics`)).text();
    times.push(performance.now() - began);
    await pause(EVERY_MS);
  }
  await picker.stop();
  await server.stop();
  kubeconfig.remove();
  return times;
}
