import type { PickedEndpoint, Placement } from '../../src/scheduling/decision.js';
import { PlacedHeaders } from '../../src/scheduling/hooks/header-edits.js';
import { HookRequestRecord } from '../../src/scheduling/hooks/hook-request-record.js';
import type { EndpointViews, HookContext } from '../../src/scheduling/hooks/hooks.js';

/** Cells of a column, more than the pool has endpoints. */
export const CELLS = 16;

/** Endpoints of the samples: idle, busy, one without signals, a full one, and one that the request may not use. */
const WAITING = [0, 3, 0, 40, 1];
const RUNNING = [0, 12, 0, 64, 2];
const KV_USAGE = [0, 0.6, 0, 1, 0.1];
const UNKNOWN_SLOT = 2;

function pickedAt(slot: number): PickedEndpoint {
  const address = `10.0.0.${slot + 1}`;
  const labels = { 'llm-d.ai/role': 'both', zone: slot % 2 === 0 ? 'a' : 'b' };
  const endpoint = {
    id: `default/pod-${slot}`,
    name: `pod-${slot}`,
    namespace: 'default',
    address,
    port: 8000,
    labels,
  };
  return { slot, address: `${address}:8000`, endpoint };
}

function column<Cells extends Float32Array | Uint32Array>(cells: Cells, values: readonly number[]): Cells {
  cells.set(values);
  return cells;
}

/** A pool as a hook sees it. @param slots those that the request may use */
export function sampleEndpoints(slots: readonly number[]): EndpointViews {
  const all = slots.length === 0 ? [] : WAITING.map((_, slot) => slot);
  return {
    slots: [...slots],
    all,
    at: (slot) => (all.includes(slot) ? pickedAt(slot) : undefined),
    slotOf: (id) => all.find((slot) => id === `default/pod-${slot}`),
    waiting: column(new Float32Array(CELLS), WAITING),
    running: column(new Float32Array(CELLS), RUNNING),
    kvUsage: column(new Float32Array(CELLS), KV_USAGE),
    inflight: column(new Uint32Array(CELLS), WAITING),
    inflightTokens: column(new Uint32Array(CELLS), [0, 4_000, 100, 90_000, 10]),
    matchedBlocks: column(new Uint32Array(CELLS), [0, 2, 0, 4, 0]),
    modelsOf: (slot) => (slot === UNKNOWN_SLOT ? undefined : new Map([['m', { id: 'm', parent: '' }]])),
    adaptersOf: () => undefined,
    factsVersion: 1,
    isKnown: (slot) => slot !== UNKNOWN_SLOT,
  };
}

/** One situation in which a hook is called. */
export interface Situation {
  readonly name: string;
  readonly request: HookRequestRecord;
  readonly endpoints: EndpointViews;
}

const HEADERS: Readonly<Record<string, string>> = { 'x-request-id': 'request-1', 'x-session-id': 'session-1' };

/** A plain request, one without headers and prompt, and pools with one endpoint and with none. */
export function situations(): readonly Situation[] {
  const request = (headers: Readonly<Record<string, string>>, promptBytes: number) => {
    const made = new HookRequestRecord({ get: (name) => headers[name] }, '/v1/chat/completions', 0, undefined);
    made.understand({ model: promptBytes > 0 ? 'm' : '', targetModel: promptBytes > 0 ? 'm' : '', promptBytes });
    made.blockTokens = 64;
    made.profile = 'default';
    return made;
  };
  return [
    { name: 'a plain request', request: request(HEADERS, 2_048), endpoints: sampleEndpoints([0, 1, 2, 3]) },
    { name: 'a request without headers and prompt', request: request({}, 0), endpoints: sampleEndpoints([0, 1, 2, 3]) },
    { name: 'a pool of one endpoint', request: request(HEADERS, 2_048), endpoints: sampleEndpoints([1]) },
    { name: 'an empty pool', request: request(HEADERS, 2_048), endpoints: sampleEndpoints([]) },
  ];
}

/** A placement on the first slots of a situation; undefined in an empty pool. */
export function samplePlacement({ endpoints }: Situation): Placement | undefined {
  const picked = endpoints.slots.slice(0, 2).map(pickedAt);
  if (picked.length === 0) return undefined;
  const nothing = () => {};
  return {
    kind: 'placed',
    endpoints: picked,
    picks: new Map([['default', picked]]),
    charge: { prefillDone: nothing, grow: nothing, release: nothing, outcome: nothing, servedBy: nothing },
    headers: new PlacedHeaders().changed,
    matchedBlocks: 1,
    totalBlocks: 8,
    promptTokens: 512,
    matchedTokens: 64,
    scores: undefined,
  };
}

/** The context of a factory: a clock that stands, and a fixed sequence of random numbers. */
export function sampleContext(name: string): HookContext {
  let drawn = 0;
  const nothing = () => {};
  return {
    name,
    now: () => 1_000,
    random: () => (drawn++ * 0.618_033_988_75) % 1,
    log: { info: nothing, warn: nothing, error: nothing },
    count: nothing,
    observe: nothing,
    share: () => nothing,
  };
}
