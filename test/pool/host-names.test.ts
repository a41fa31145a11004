import { describe, expect, it } from 'vitest';
import { HostNames } from '../../dist/src/pool/discovery/host-names.js';

describe('HostNames', () => {
  it('HostNames asks for two names at one time at most, and for all', async () => {
    let open = 0;
    let most = 0;
    const resolve = async () => {
      open += 1;
      most = Math.max(most, open);
      await new Promise((done) => setImmediate(done));
      open -= 1;
      return ['10.0.0.1'];
    };
    const names = new Set(Array.from({ length: 50 }, (_, i) => `host-${i}`));
    const hosts = new HostNames(
      { resolve },
      () => {},
      () => {},
    );
    await hosts.watch(names);
    expect([most, [...names].every((name) => hosts.address(name) === '10.0.0.1')]).toEqual([2, true]);
    hosts.stop();
  });

  it('HostNames waits for a silent name once, not at every later call', async () => {
    const reports: string[] = [];
    const hosts = new HostNames(
      { resolve: () => new Promise(() => {}), patienceMs: 500 },
      () => {},
      (name, problem) => reports.push(`${name} ${problem}`),
    );
    await hosts.watch(new Set(['silent']));
    let returned = false;
    void hosts.watch(new Set(['silent'])).then(() => {
      returned = true;
    });
    await new Promise((done) => setImmediate(done));
    expect(returned).toBe(true);
    expect(reports).toEqual(['silent does not resolve (no answer yet); it is left out until it does']);
    hosts.stop();
  });

  it('HostNames forgets a name that is watched no longer', async () => {
    const hosts = new HostNames(
      { resolve: async () => ['10.0.0.1'] },
      () => {},
      () => {},
    );
    await hosts.watch(new Set(['a', 'b']));
    await hosts.watch(new Set(['b']));
    expect([hosts.address('a'), hosts.address('b')]).toEqual([undefined, '10.0.0.1']);
    hosts.stop();
  });

  it('HostNames takes answers that are no IP for none', async () => {
    const reports: string[] = [];
    const hosts = new HostNames(
      { resolve: async () => ['nonsense'] },
      () => {},
      (_, problem) => reports.push(problem),
    );
    await hosts.watch(new Set(['a']));
    expect([hosts.address('a'), reports]).toEqual([
      undefined,
      ['does not resolve (it has no address); it is left out until it does'],
    ]);
    hosts.stop();
  });

  it('HostNames ends a call that waits when it is stopped', async () => {
    const hosts = new HostNames(
      { resolve: () => new Promise(() => {}), patienceMs: 60_000 },
      () => {},
      () => {},
    );
    const waiting = hosts.watch(new Set(['silent']));
    hosts.stop();
    await waiting;
  });
});
