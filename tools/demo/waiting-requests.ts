/** Sum of the picker's gauge of requests that wait in its queues; 0 when it shows none. */
export async function waitingRequests(metricsUrl: string): Promise<number> {
  const page = await (await fetch(metricsUrl)).text();
  const series = page.matchAll(/^llm_d_epp_flow_control_queue_size(?:\{[^}]*\})? (\S+)$/gm);
  return [...series].reduce((sum, [, value]) => sum + Number(value), 0);
}
