import { describe, expect, it } from 'vitest';
import {
  ADDRESS_REFUSALS,
  ClientShares,
  type ConnectionShare,
  networkOf,
} from '../../dist/src/ingress/client-shares.js';
import { ConnectionRefusals } from '../../dist/src/ingress/connection-refusals.js';

const [GOOD, HOSTILE] = ['10.0.0.1', '10.0.0.2'];

function fill(share: ConnectionShare, streams: number): void {
  for (let i = 0; i < streams; i++) share.opened();
}

/** Opens streams until one is refused. @returns their number */
function fillAll(share: ConnectionShare): number {
  let count = 0;
  for (; !share.isCrowded && count < 1_000_000; count++) share.opened();
  return count;
}

/** Counts time as pieces of a millisecond, as the work of a busy thread comes. */
function spend(share: ConnectionShare, ms: number): void {
  for (let i = 0; i < ms; i++) share.spend(1);
}

describe('shares of open streams by connection', () => {
  it('a connection that is alone has all streams, and half of them beside another one', () => {
    const shares = new ClientShares({ streamsMax: 100 });
    const first = shares.join(GOOD, false, 0);
    fill(first, 60);
    expect(first.isCrowded).toBe(false);
    const second = shares.join(GOOD, false, 0);
    expect([first.isCrowded, second.isCrowded]).toEqual([true, false]);
    second.leave();
    expect(first.isCrowded).toBe(false);
  });

  it('twenty connections leave as much as one of them has to the next one', () => {
    const shares = new ClientShares({ streamsMax: 10_000 });
    const hostile = Array.from({ length: 20 }, () => shares.join(GOOD, false, 0));
    const good = shares.join(GOOD, false, 0);
    fill(good, 1);
    for (let round = 0; round < 12_000; round++) {
      const share = hostile[round % 20]!;
      if (!share.isCrowded) share.opened();
    }
    expect(10_000 - shares.streams).toBeGreaterThanOrEqual(450);
    expect(fillAll(good)).toBeGreaterThanOrEqual(450);
  });

  it('connections with streams alike can use all of them', () => {
    const shares = new ClientShares({ streamsMax: 1_000 });
    const all = Array.from({ length: 4 }, () => shares.join(GOOD, false, 0));
    for (let round = 0; round < 1_000; round++) {
      const share = all[round % 4]!;
      if (!share.isCrowded) share.opened();
    }
    expect(shares.streams).toBe(1_000);
  });
});

describe('shares of open streams by address', () => {
  function attacked(trusted: readonly string[] = []) {
    const refusals = new ConnectionRefusals(ADDRESS_REFUSALS, () => undefined);
    const shares = new ClientShares({ streamsMax: 8_000, trusted, refusals });
    const hostile = Array.from({ length: 20 }, () => shares.join(HOSTILE, false, 0));
    for (let round = 0; round < 12_000; round++) {
      const share = hostile[round % 20]!;
      if (!share.isCrowded) share.opened();
    }
    return { shares, refusals };
  }

  it('an address alone can use all streams, as its connections share them', () => {
    const { shares, refusals } = attacked();
    expect([shares.streams, refusals.counts.streams]).toEqual([8_000, 0]);
  });

  it('an address leaves an eighth of the streams to others, whatever the number of its connections', () => {
    const refusals = new ConnectionRefusals(ADDRESS_REFUSALS, () => undefined);
    const shares = new ClientShares({ streamsMax: 8_000, refusals });
    const good = shares.join(GOOD, false, 0);
    const hostile = Array.from({ length: 20 }, () => shares.join(HOSTILE, false, 0));
    for (let round = 0; round < 12_000; round++) {
      const share = hostile[round % 20]!;
      if (!share.isCrowded) share.opened();
    }
    expect(shares.streams).toBe(7_000);
    expect(refusals.counts.streams).toBeGreaterThan(4_000);
    expect(fillAll(good)).toBe(875);
  });

  it.each([
    ['an address', [HOSTILE]],
    ['a network', ['10.0.0.0/24']],
  ])('a proxy that is trusted by %s has no share by address', (_, trusted) => {
    const shares = new ClientShares({ streamsMax: 8_000, trusted });
    shares.join('10.0.9.9', false, 0);
    const proxy = Array.from({ length: 20 }, () => shares.join(HOSTILE, false, 0));
    for (let round = 0; round < 8_000; round++) {
      const share = proxy[round % 20]!;
      if (!share.isCrowded) share.opened();
    }
    expect(shares.streams).toBe(8_000);
  });

  it('clients of a Unix domain socket, and those with a certificate, are trusted', () => {
    const shares = new ClientShares({ streamsMax: 8_000 });
    expect([shares.join(undefined, false, 0).isTrusted, shares.join(GOOD, true, 0).isTrusted]).toEqual([true, true]);
    expect(shares.isShared).toBe(false);
    expect(shares.join(GOOD, false, 0).isTrusted).toBe(false);
    expect(shares.isShared).toBe(true);
  });
});

describe('time of the thread by address', () => {
  it('connections of one address neither go first nor divide their turns, however much they use', () => {
    const shares = new ClientShares({ streamsMax: 100 });
    const [one, other] = [shares.join(GOOD, false, 0), shares.join(GOOD, false, 0)];
    expect([one.begin(0), one.goesFirst, other.turnParts]).toEqual([false, false, 1]);
  });

  it('an address below its part of the time goes first, the connections of one above it share one turn', () => {
    const shares = new ClientShares({ streamsMax: 100 });
    const good = shares.join(GOOD, false, 0);
    const hostile = Array.from({ length: 4 }, () => shares.join(HOSTILE, false, 0));
    for (const share of hostile) share.opened();
    for (let now = 0; now < 1_000; now += 10) {
      good.begin(now);
      good.spend(1);
      for (const share of hostile) {
        share.begin(now);
        share.spend(2);
      }
    }
    expect([good.goesFirst, good.turnParts]).toEqual([true, 1]);
    expect(hostile.map(({ goesFirst, turnParts }) => [goesFirst, turnParts])).toEqual(Array(4).fill([false, 4]));
    expect(shares.isContended).toBe(true);
    for (const share of hostile) share.leave();
    expect([good.goesFirst, shares.isContended]).toEqual([false, false]);
  });

  it('a pause of the thread counts as two milliseconds of the address whose work it meets', () => {
    const shares = new ClientShares({ streamsMax: 100 });
    const good = shares.join(GOOD, false, 0);
    shares.join(HOSTILE, false, 0);
    good.begin(0);
    for (let pauses = 0; pauses < 4; pauses++) good.spend(60);
    expect(good.goesFirst).toBe(true);
    good.spend(60);
    expect(good.goesFirst).toBe(false);
  });

  it('an address that uses a third of the time goes first beside one that uses the rest', () => {
    const shares = new ClientShares({ streamsMax: 100 });
    const [good, hostile] = [GOOD, HOSTILE].map((address) => shares.join(address, false, 0));
    for (let now = 0; now < 1_000; now += 9) {
      good!.begin(now);
      spend(good!, 3);
      hostile!.begin(now);
      spend(hostile!, 6);
    }
    expect([good!.goesFirst, hostile!.goesFirst]).toEqual([true, false]);
  });

  it('addresses go first for four fifths of the time together, and two that use all of it wait like others', () => {
    const shares = new ClientShares({ streamsMax: 100 });
    const both = [GOOD, HOSTILE].map((address) => shares.join(address, false, 0));
    for (let now = 0; now < 1_000; now += 10) {
      for (const share of both) {
        share.begin(now);
        spend(share, 5);
      }
    }
    expect(both.map(({ goesFirst }) => goesFirst)).toEqual([false, false]);
  });

  it('an address that has used too much goes first again when it has used little for 200 ms', () => {
    const shares = new ClientShares({ streamsMax: 100 });
    shares.join(GOOD, false, 0);
    const late = shares.join(HOSTILE, false, 0);
    late.begin(0);
    spend(late, 10_000);
    late.begin(100);
    expect(late.goesFirst).toBe(false);
    late.begin(200);
    expect(late.goesFirst).toBe(true);
  });
});

describe('resets by address', () => {
  it('an address that resets streams before their turn may not connect until its rate allows it', () => {
    const refusals = new ConnectionRefusals(ADDRESS_REFUSALS, () => undefined);
    const shares = new ClientShares({ streamsMax: 100, refusals });
    const good = shares.join(GOOD, false, 0);
    let taken = 0;
    for (let i = 0; i < 3; i++) {
      const hostile = shares.join(HOSTILE, false, 0);
      while (taken < 100_000 && hostile.takeReset(0)) taken++;
      hostile.leave();
      shares.join('10.0.0.3', false, 0);
    }
    expect(taken).toBe(20_000);
    expect(refusals.counts.resets).toBe(3);
    expect([shares.refuses(HOSTILE, 500), shares.refuses(GOOD, 500), good.takeReset(500)]).toEqual([true, false, true]);
    expect(shares.refuses(HOSTILE, 1_500)).toBe(false);
  });

  it('the resets of an address alone, or of a trusted one, are not counted', () => {
    const alone = new ClientShares({ streamsMax: 100 });
    const share = alone.join(HOSTILE, false, 0);
    const shares = new ClientShares({ streamsMax: 100, trusted: [HOSTILE] });
    shares.join(GOOD, false, 0);
    const trusted = shares.join(HOSTILE, false, 0);
    for (let i = 0; i < 50_000; i++) expect(share.takeReset(0) && trusted.takeReset(0)).toBe(true);
  });

  it('addresses without a connection are forgotten beyond a thousand', () => {
    const shares = new ClientShares({ streamsMax: 100 });
    shares.join(GOOD, false, 0);
    const hostile = shares.join(HOSTILE, false, 0);
    while (hostile.takeReset(0));
    hostile.leave();
    shares.join('10.0.0.3', false, 0);
    expect(shares.refuses(HOSTILE, 0)).toBe(true);
    for (let i = 0; i < 1_024; i++) shares.join(`10.1.${i >> 8}.${i & 255}`, false, 0).leave();
    expect(shares.refuses(HOSTILE, 0)).toBe(false);
  });
});

describe('what counts as one address', () => {
  it.each([
    ['10.1.2.3', '10.1.2.3'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8::5', '2001:db8:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('%s counts as %s', (address, network) => expect(networkOf(address)).toBe(network));
});
