import type { BandSettings, FairnessSettings, FlowControlSettings } from '../dist/src/contract/queue-settings.js';
import type { DispatchResult, QueuedRequest } from '../dist/src/flow-control/queue-contract.js';
import { QueueMachine } from '../dist/src/flow-control/queue-machine.js';
import type { Bench, Prepared } from './bench.ts';

const NO_LIMITS = { requests: Infinity, bytes: Infinity, tokens: Infinity };
const FAIR: FairnessSettings = { kind: 'start-time', weights: {} };
/** Most dispatches of one turn, as the flow controller asks for them. */
const TURN = 256;

function settings(fairness: FairnessSettings): FlowControlSettings {
  const band: BandSettings = { limits: NO_LIMITS, fairness, ordering: { kind: 'arrival' } };
  return {
    limits: NO_LIMITS,
    ttlMs: 60_000,
    noEndpointTtlMs: 60_000,
    maxExpectedWaitMs: Infinity,
    bands: [],
    template: band,
    negativeTemplate: band,
    fallback: band,
    usageLimit: { kind: 'static', threshold: 1 },
    tenantLimits: [],
    replicas: 1,
    enableEviction: false,
    sessions: { mode: 'off', smallPrompt: 0.02, stretch: 0.1, maxWaitMs: 300_000 },
  };
}

function requestOf(priority: number, flow: string, reference: number): QueuedRequest {
  return {
    priority,
    flow,
    candidates: undefined,
    promptTokens: 900,
    uncachedTokens: 500,
    maxTokens: 0,
    bytes: 4_000,
    deadlineMs: Infinity,
    firstTokenDueMs: Infinity,
    stickySlot: -1,
    reference,
  };
}

/** Requests of all flows in turn over all bands, made beforehand: the machine is measured, not their making. */
function requestsOf(bands: number, flows: number): readonly QueuedRequest[] {
  return Array.from({ length: Math.max(bands, flows) }, (_, i) => requestOf(i % bands, `flow-${i % flows}`, i));
}

/** Enqueue and dispatch in batches: `flows` requests wait, then all of them go. */
function throughput(flows: number): Bench {
  return {
    name: `queues/${flows}-flows`,
    async setup() {
      const queue = new QueueMachine(settings(FAIR), 0);
      const requests = requestsOf(1, flows);
      const count = Math.max(1_000, flows / 10);
      const dispatch = (handle: number): DispatchResult => {
        dispatched.push(handle);
        return 'dispatched';
      };
      const dispatched: number[] = [];
      let next = 0;
      let nowMs = 0;
      // Every flow has been seen before, so that none is made while it is measured.
      for (const request of requests) queue.cancel(queue.enqueue(request, 0), 0);
      return {
        opsPerRun: count,
        run() {
          nowMs += 1;
          for (let i = 0; i < count; i++) {
            queue.enqueue(requests[next]!, nowMs);
            next = next + 1 === requests.length ? 0 : next + 1;
          }
          while (queue.waiting > 0) queue.dispatch(dispatch, nowMs, TURN);
          for (const handle of dispatched) queue.end(handle, 200, nowMs);
          dispatched.length = 0;
        },
      };
    },
  };
}

/**
 * llm-d-router's shapes: `waiting` callers before a pool that takes `limit` at once (0 = any number), each back at
 * once.
 */
function shape(limit: number, bands: number, flows: number, waiting: number): Bench {
  return {
    name: `queues/limit-${limit}-bands-${bands}-flows-${flows}-waiting-${waiting}`,
    async setup(): Promise<Prepared> {
      const queue = new QueueMachine(settings({ kind: 'global-strict' }), 0);
      const requests = requestsOf(bands, flows);
      const running: number[] = [];
      const most = limit === 0 ? Infinity : limit;
      let next = 0;
      let nowMs = 0;
      const dispatch = (handle: number): DispatchResult => {
        if (running.length >= most) return 'closed';
        running.push(handle);
        return 'dispatched';
      };
      const arrive = () => {
        queue.enqueue(requests[next]!, nowMs);
        next = next + 1 === requests.length ? 0 : next + 1;
      };
      for (let i = 0; i < waiting; i++) arrive();
      const count = 1_000;
      return {
        opsPerRun: count,
        run() {
          nowMs += 1;
          for (let i = 0; i < count; i++) {
            if (running.length > 0) queue.end(running.pop()!, 200, nowMs);
            queue.opened(0);
            queue.dispatch(dispatch, nowMs, 1);
            arrive();
          }
        },
      };
    },
  };
}

/** Clients that go away all at once: 100,000 requests come, wait and are cancelled in another order. */
const cancels: Bench = {
  name: 'queues/100000-cancels',
  async setup() {
    const queue = new QueueMachine(settings(FAIR), 0);
    const requests = requestsOf(1, 1_000);
    const handles = new Float64Array(100_000);
    let nowMs = 0;
    return {
      opsPerRun: handles.length,
      run() {
        nowMs += 1;
        for (let i = 0; i < handles.length; i++) handles[i] = queue.enqueue(requests[i % requests.length]!, nowMs);
        // A step that has no common divisor with the count visits each once, far from its neighbours.
        for (let i = 0, at = 0; i < handles.length; i++, at = (at + 61_803) % handles.length) {
          queue.cancel(handles[at]!, nowMs);
        }
        if (queue.waiting > 0) throw new Error(`${queue.waiting} requests still wait`);
      },
    };
  },
};

/** A backlog before a pool with 64 places: one request ends, the next one goes, until nobody waits. */
const backlog: Bench = {
  name: 'queues/backlog-10000',
  async setup() {
    const queue = new QueueMachine(settings(FAIR), 0);
    const requests = requestsOf(1, 1_000);
    const waiting = 10_000;
    const places = 64;
    const running: number[] = [];
    let nowMs = 0;
    const dispatch = (handle: number): DispatchResult => {
      if (running.length === places) return 'closed';
      running.push(handle);
      return 'dispatched';
    };
    return {
      opsPerRun: waiting,
      run() {
        for (let i = 0; i < waiting; i++) queue.enqueue(requests[i % requests.length]!, nowMs);
        while (queue.waiting > 0 || running.length > 0) {
          nowMs += 0.1;
          if (running.length > 0) queue.end(running.shift()!, 200, nowMs);
          queue.opened(0);
          queue.dispatch(dispatch, nowMs, TURN);
          const idle = queue.waiting > 0 && running.length < places;
          if (idle) throw new Error(`${queue.waiting} requests wait and only ${running.length} places are taken`);
        }
      },
    };
  },
};

/** The queue machine by itself, without threads and streams. */
export const benches: readonly Bench[] = [
  ...[1, 10, 100_000].map(throughput),
  cancels,
  backlog,
  ...[0, 1, 100].flatMap((limit) =>
    [1, 8].flatMap((bands) =>
      [10, 5_000].flatMap((flows) => [10, 5_000].map((waiting) => shape(limit, bands, flows, waiting))),
    ),
  ),
];
