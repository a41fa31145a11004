import { describe, expect, it } from 'vitest';
import { QueueMachine } from '../../dist/src/flow-control/queue-machine.js';
import { type EndpointRoom, FLOWS_SHOWN, flowReport } from '../../dist/src/picker/control/flow-report.js';
import { request, settings } from '../flow-control/settings.ts';

const ROOM: EndpointRoom = {
  endpoint: 'default/a',
  inflight: 1,
  saturation: 0.5,
  window: 1_000,
  pendingTokens: 0,
  pendingRequests: 0,
  limit: Infinity,
  foreignQueue: false,
  capacity: 0,
  stepMs: 20,
  tokenMs: 0.05,
  overdue: 0,
  remoteRequests: 0,
  sessionTokens: undefined,
};

interface Report {
  readonly whyTheHeadWaits?: string;
  readonly bands: readonly { readonly flows: readonly unknown[]; readonly flowCount: number }[];
  readonly endpoints: readonly { readonly closedBy: readonly string[] }[];
}

function report(endpoints: readonly EndpointRoom[], { mode = 'learned', share = 1, flows = 1, held = 0 } = {}): Report {
  const queues = new QueueMachine(settings(), 0, { requests: 2 ** 17, flows: 100_000 });
  for (let i = 0; i < flows; i++) queues.enqueue(request({ flow: `flow ${i}` }), 0);
  const snapshot = queues.snapshot(1_000, FLOWS_SHOWN);
  const sources = {
    mode,
    snapshot,
    ceilings: new Map(),
    saturation: 1,
    share,
    endpoints,
    events: [],
    sessions: undefined,
    held: { count: held, longest: [] },
  };
  return JSON.parse(JSON.stringify(flowReport(sources))) as Report;
}

const closedBy = (given: Partial<EndpointRoom>, share = 1) =>
  report([{ ...ROOM, ...given }], { share }).endpoints[0]!.closedBy;

describe('the page of flow control', () => {
  it.each([
    ['nothing', {}, []],
    ['a full window', { pendingRequests: 1, pendingTokens: 1_000 }, ['unanswered prompts fill one step']],
    ['the learned limit', { limit: 1 }, ['learned limit of requests']],
    ['requests of others', { limit: 0, foreignQueue: true }, ['the engine queues requests of others']],
    ['the cache', { capacity: 9, saturation: 1 }, ['KV cache']],
  ])('the page of flow control says what closes an endpoint: %s', (_what, given, reasons) => {
    expect(closedBy(given)).toEqual(reasons);
  });

  it('the page of flow control counts by the share of a picker that is one of several', () => {
    expect(closedBy({ inflight: 4, limit: 10 })).toEqual([]);
    expect(closedBy({ inflight: 4, limit: 10 }, 0.4)).toEqual(['learned limit of requests']);
    expect(closedBy({ pendingRequests: 1, pendingTokens: 500 }, 0.5)).toEqual(['unanswered prompts fill one step']);
  });

  it('the page of flow control says why the head waits', () => {
    const full = { ...ROOM, limit: 1 };
    expect(report([]).whyTheHeadWaits).toBe('the pool has no endpoints');
    expect(report([full]).whyTheHeadWaits).toBe('no endpoint has room');
    expect(report([full, ROOM]).whyTheHeadWaits).toMatch(/^1 of 2 endpoints have no room/);
    expect(report([ROOM], { held: 1 }).whyTheHeadWaits).toMatch(/^no KV cache has room for the sessions/);
    expect(report([full], { flows: 0 }).whyTheHeadWaits).toBeUndefined();
  });

  it('the page of flow control stays small with 100,000 flows', () => {
    const large = report([ROOM], { flows: 100_000 });
    expect(large.bands[0]).toMatchObject({ flowCount: 100_000 });
    expect(large.bands[0]!.flows).toHaveLength(FLOWS_SHOWN);
    expect(JSON.stringify(large).length).toBeLessThan(10_000);
  });
});
