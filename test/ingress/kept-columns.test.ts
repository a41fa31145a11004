import { describe, expect, it } from 'vitest';
import type { KeptColumns } from '../../dist/src/contract/kept-columns.js';
import { ColumnRequests } from '../../dist/src/ingress/kept-columns.js';

const NOW = 1_000;
const wanted = (by: KeptColumns['by'], value: string, rest: Partial<KeptColumns> = {}): KeptColumns => ({
  ...{ number: 1, by, value, untilMs: NOW + 10, decisions: 3 },
  ...rest,
});

function keeping(...all: readonly KeptColumns[]) {
  const requests = new ColumnRequests();
  requests.replace(all);
  const keeps = (given: { tenant?: string; model?: string; headers?: Record<string, string> }, nowMs = NOW) => {
    const { tenant = '', model = '', headers = {} } = given;
    const known = { get: (name: string) => headers[name] };
    return requests.keeps({ fairnessId: tenant, model }, known as Parameters<ColumnRequests['keeps']>[1], nowMs);
  };
  return { requests, keeps };
}

describe('columns that are kept on request', () => {
  it('columns are kept of nothing as long as nobody asks', () => {
    expect(keeping().keeps({ tenant: 'a' })).toBe(false);
  });

  it('columns are kept of one tenant, one model, one session, and of no others', () => {
    const { keeps } = keeping(
      wanted('tenant', 'a'),
      wanted('model', 'm', { number: 2 }),
      wanted('session', 's', { number: 3 }),
    );
    expect(keeps({ tenant: 'a' })).toBe(true);
    expect(keeps({ model: 'm' })).toBe(true);
    expect(keeps({ headers: { 'x-session-id': 's' } })).toBe(true);
    expect(keeps({ headers: { 'x-session-token': 's' } })).toBe(true);
    expect(keeps({ tenant: 'm', model: 'a', headers: { 'x-session-id': 'a' } })).toBe(false);
  });

  it('columns are kept until their time is over', () => {
    const { keeps } = keeping(wanted('tenant', 'a'));
    expect(keeps({ tenant: 'a' }, NOW + 9)).toBe(true);
    expect(keeps({ tenant: 'a' }, NOW + 10)).toBe(false);
  });

  it('columns are kept of so many decisions, also when the shard is told again', () => {
    const { requests, keeps } = keeping(wanted('tenant', 'a'));
    expect([keeps({ tenant: 'a' }), keeps({ tenant: 'a' })]).toEqual([true, true]);
    requests.replace([wanted('tenant', 'a')]);
    expect([keeps({ tenant: 'a' }), keeps({ tenant: 'a' })]).toEqual([true, false]);
    requests.replace([wanted('tenant', 'a', { number: 2 })]);
    expect(keeps({ tenant: 'a' })).toBe(true);
  });
});
