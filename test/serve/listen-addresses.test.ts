import { describe, expect, it } from 'vitest';
import { listenAddresses } from '../../dist/src/serve/listen-flags.js';

/** Addresses of the ports on a machine whose every address is `every`, and the warnings about them. */
function addresses(given: Partial<Parameters<typeof listenAddresses>[0]>, every: '::' | '0.0.0.0') {
  const none = { bindAddress: undefined, grpcBindAddress: undefined, grpcHealthBindAddress: undefined };
  const warnings: string[] = [];
  const flags = { ...none, metricsBindAddress: undefined, ...given };
  return { ...listenAddresses(flags, every, (text) => warnings.push(text)), warnings };
}

describe('the listening addresses', () => {
  it('a machine without IPv6 is listened on at every IPv4 address, without a warning where no flag asks for more', () => {
    expect(addresses({}, '0.0.0.0')).toEqual({
      ...{ grpc: '0.0.0.0', health: '0.0.0.0', metrics: '0.0.0.0' },
      warnings: [],
    });
  });

  it('a flag that asks for :: where there is no IPv6 is named by a warning, with the address in its place', () => {
    const given = { bindAddress: '::', metricsBindAddress: '127.0.0.1' };
    expect(addresses(given, '0.0.0.0')).toEqual({
      ...{ grpc: '0.0.0.0', health: '0.0.0.0', metrics: '127.0.0.1' },
      warnings: ['--bind-address=:: listens on 0.0.0.0: this machine has no IPv6'],
    });
    expect(addresses({ grpcBindAddress: '::' }, '0.0.0.0').warnings).toEqual([
      '--grpc-bind-address=:: listens on 0.0.0.0: this machine has no IPv6',
    ]);
  });

  it('a flag that asks for :: where there is IPv6 gets it without a warning', () => {
    expect(addresses({ bindAddress: '::' }, '::')).toEqual({
      ...{ grpc: '::', health: '::', metrics: '::' },
      warnings: [],
    });
  });
});
