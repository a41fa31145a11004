import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { RecordingControl } from '../../dist/src/picker/control/recording-control.js';

/** A control with two shards, whose messages the test sends, behind a server. */
async function serve(told: () => void) {
  const control = new RecordingControl({
    facts: () => ({}) as ReturnType<ConstructorParameters<typeof RecordingControl>[0]['facts']>,
    assignments: () => [],
    shards: 2,
    broadcast: told,
    logged: true,
    nowMs: () => performance.now(),
  });
  const server = createServer((request, response) => control.route(request, response)).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return { control, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/?seconds=300` };
}

it('the head of a recording is sent when all shards record', async () => {
  const events: string[] = [];
  const { control, server, url } = await serve(async () => {
    for (const shard of [1, 2]) {
      await pause(50);
      events.push(`shard ${shard} records`);
      control.began(1);
    }
  });
  const { body } = await fetch(url);
  events.push('head');
  expect(events).toEqual(['shard 1 records', 'shard 2 records', 'head']);
  control.stop();
  await body!.cancel();
  await new Promise((resolve) => server.close(resolve));
});
