import { describe, expect, it } from 'vitest';
import { QueueMachine } from '../../dist/src/flow-control/queue-machine.js';
import { request, settings } from './settings.ts';

const MINUTE_MS = 60_000;

/** Queues with the bands 0 and 5, of which the second one had its last request at time 0. */
function used() {
  const queue = new QueueMachine(settings(), 0, { requests: 64, flows: 8 });
  const handle = queue.enqueue(request({ priority: 5 }), 0);
  queue.dispatch(() => 'dispatched', 0, 1);
  return { queue, handle, priorities: () => queue.snapshot(0, 0).bands.map(({ priority }) => priority) };
}

describe('a band of waiting requests', () => {
  it('a band of waiting requests that was not used for ten minutes is dropped', () => {
    const { queue, handle, priorities } = used();
    queue.end(handle, 1, 0);
    queue.enqueue(request(), 9 * MINUTE_MS);
    expect(priorities()).toEqual([5, 0]);
    queue.enqueue(request(), 10 * MINUTE_MS);
    expect(priorities()).toEqual([0]);
  });

  it('a band of waiting requests stays while a request of it runs', () => {
    const { queue, priorities } = used();
    queue.enqueue(request(), 20 * MINUTE_MS);
    expect(priorities()).toEqual([5, 0]);
  });

  it('a band of waiting requests in which nothing waits drains in no time, before its rate is known', () => {
    const queue = new QueueMachine(settings(), 0, { requests: 64, flows: 8 });
    expect(queue.drainMs(0, 0)).toBe(0);
    queue.enqueue(request(), 0);
    expect(queue.drainMs(0, 0)).toBeUndefined();
  });
});
