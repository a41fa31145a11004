import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SERVE_FLAGS } from '../../dist/src/serve/flag-table.js';
import { fleetSize, fleetText } from '../../scripts/fleet-arithmetic.ts';

const PARTS = { exchangeUs: 60, sharedUs: 5, bytes: 200 };

test('a pool in groups has shards for six tenths of their time, and two replicas of a group at least', () => {
  // A million exchanges of 60 µs keep 60 cores busy: 100 shards, of which a replica has eight.
  expect(fleetSize(1e6, 1, PARTS)).toMatchObject({ replicas: 13, shards: 8, shardCores: 104 });
  expect(fleetSize(1e6, 25, PARTS)).toMatchObject({ rate: 40_000, replicas: 2, shards: 2, shardCores: 100 });
  expect(fleetSize(1e6, 100, PARTS)).toMatchObject({ replicas: 2, shards: 1, shardCores: 200 });
});

test('a pool in groups shares within the default share of each replica, by rarer updates at the bound', () => {
  const share = SERVE_FLAGS['replication-cpu-percent'].initial / 100;
  const one = fleetSize(1e6, 1, PARTS);
  expect(one).toMatchObject({ isBounded: true, exchangeCores: 13 * share, messages: [13 * 50, 13 * 50 * 12] });
  const many = fleetSize(1e6, 25, PARTS);
  expect(many).toMatchObject({ isBounded: false, messages: [50 * 200, 50 * 200] });
  expect(many.exchangeCores).toBeCloseTo(50 * 0.2);
});

test('a pool in groups has NATS servers for the bytes that they send', () => {
  expect(fleetSize(1e6, 25, PARTS)).toMatchObject({ megabytes: [200, 200], natsServers: 1 });
  expect(fleetSize(1e6, 5, PARTS)).toMatchObject({ replicas: 3, megabytes: [200, 400], natsServers: 1 });
  expect(fleetSize(1e6, 1, PARTS)).toMatchObject({ megabytes: [200, 2_400], natsServers: 4 });
});

test('the page of the replicas has the table of the figures that stand above it', () => {
  const page = readFileSync(new URL('../../docs/internals/replication.md', import.meta.url), 'utf8');
  const table = page.split(/<!-- measured: (?:begin|end) -->/)[1]!.trim();
  const figures = /^([\d,]+) requests a second; ([\d.]+) µs .*\n([\d.]+) µs .*? and ([\d.]+) bytes/.exec(table);
  const [rate, exchangeUs, sharedUs, bytes] = figures!.slice(1).map((text) => Number(text.replaceAll(',', '')));
  expect(table).toBe(fleetText(rate!, { exchangeUs: exchangeUs!, sharedUs: sharedUs!, bytes: bytes! }));
});
