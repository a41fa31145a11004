import type { Band, QueueTables } from './band.js';
import { OutputMean } from './output-mean.js';
import { NONE, RUNNING } from './request-slab.js';

/** Output tokens for which a running request pays at once beyond its estimate (docs/internals/flow-control.md). */
const PROGRESS_TOKENS = 64;

/**
 * Dispatched requests that have not ended. Their flows pay for the expected output at the start and for more as it
 * comes. At the end they get back the unused part.
 */
export class RunningRequests {
  count = 0;
  readonly #tables: QueueTables;
  readonly #bandOf: (priority: number) => Band | undefined;
  readonly #outputs = new OutputMean();

  constructor(tables: QueueTables, bandOf: (priority: number) => Band | undefined) {
    this.#tables = tables;
    this.#bandOf = bandOf;
  }

  /** Expected output tokens of one more request of a flow; `flow` may be NONE, `maxTokens` 0 = no bound. */
  expectedOutput(flow: number, maxTokens: number): number {
    const mean = flow === NONE ? this.#outputs.value : this.#tables.flows.outputMean[flow]!;
    return maxTokens > 0 ? Math.min(mean, maxTokens) : mean;
  }

  /** Mean output of all flows, the estimate for a flow without answers. */
  get outputMean(): number {
    return this.#outputs.value;
  }

  /** Charges the flow of a dispatched request, whose lane is still known. @returns the tokens that its flow pays */
  pay(index: number, band: Band): number {
    const { requests } = this.#tables;
    const flow = requests.flow[index]!;
    const output = this.expectedOutput(flow, requests.maxTokens[index]!);
    requests.paidOutput[index] = output;
    requests.seenOutput[index] = 0;
    const tokens = requests.uncachedTokens[index]! + output;
    band.fairness.dispatched(requests.lane[index]!, flow, tokens);
    return tokens;
  }

  start(index: number, band: Band): void {
    const { requests, flows } = this.#tables;
    requests.state[index] = RUNNING;
    flows.running[requests.flow[index]!]!++;
    band.running++;
    this.count++;
  }

  progress(index: number, outputTokens: number, nowMs: number): void {
    const { requests } = this.#tables;
    this.#see(index, outputTokens, nowMs);
    const over = outputTokens - requests.paidOutput[index]!;
    if (over <= 0) return;
    const tokens = Math.ceil(over / PROGRESS_TOKENS) * PROGRESS_TOKENS;
    requests.paidOutput[index]! += tokens;
    this.#band(index)?.fairness.used(requests.flow[index]!, tokens);
  }

  /**
   * Settles the account at the end of a request. Output that was generated is not returned. The caller frees the
   * record.
   */
  end(index: number, toldTokens: number, nowMs: number): void {
    const { requests, flows } = this.#tables;
    const flow = requests.flow[index]!;
    const outputTokens = Math.max(toldTokens, requests.seenOutput[index]!);
    this.#see(index, outputTokens, nowMs);
    this.#outputs.completed(nowMs);
    flows.learnOutput(flow, outputTokens);
    const fairness = this.#band(index)?.fairness;
    const unused = requests.paidOutput[index]! - outputTokens;
    if (unused > 0) fairness?.unused(flow, unused);
    else if (unused < 0) fairness?.used(flow, -unused);
    fairness?.served(flow, requests.promptTokens[index]!, outputTokens, nowMs);
    this.#stop(index, nowMs);
  }

  /** Returns the payment of a request that was not placed to its flow. */
  takeBack(index: number, nowMs: number): void {
    const { requests } = this.#tables;
    const flow = requests.flow[index]!;
    this.#band(index)?.fairness.unused(flow, requests.uncachedTokens[index]! + requests.paidOutput[index]!);
    this.#stop(index, nowMs);
    this.#band(index)?.fairness.notPlaced(flow);
  }

  #band(index: number): Band | undefined {
    return this.#bandOf(this.#tables.flows.priority[this.#tables.requests.flow[index]!]!);
  }

  #see(index: number, outputTokens: number, nowMs: number): void {
    const { seenOutput } = this.#tables.requests;
    const more = outputTokens - seenOutput[index]!;
    if (more <= 0) return;
    seenOutput[index] = outputTokens;
    this.#outputs.generated(more, nowMs);
  }

  #stop(index: number, nowMs: number): void {
    this.#tables.flows.running[this.#tables.requests.flow[index]!]!--;
    this.count--;
    const band = this.#band(index);
    if (band === undefined) return;
    band.running--;
    band.idleSinceMs = nowMs;
  }
}
