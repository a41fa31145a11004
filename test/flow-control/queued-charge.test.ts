import { describe, expect, it } from 'vitest';
import { QueuedCharge } from '../../dist/src/flow-control/queued-charge.js';
import type { Charge } from '../../dist/src/scheduling/decision.js';

/** The charge of request 7, and what its account and the charge behind it are told. */
function queued() {
  const told: string[] = [];
  const note = (what: string) => (): void => void told.push(what);
  const inner: Charge = {
    prefillDone: note('prefill'),
    grow: note('grown'),
    outcome: note('outcome'),
    servedBy: note('served'),
    release: note('released'),
  };
  const account = {
    progress: (handle: number, tokens: number) => void told.push(`${handle} has ${tokens}`),
    end: (handle: number, tokens: number) => void told.push(`${handle} ended with ${tokens}`),
    refund: (handle: number) => void told.push(`${handle} refunded`),
  };
  return { charge: new QueuedCharge(inner, account, 7), told };
}

describe('the charge of a dispatched request', () => {
  it('the charge of a dispatched request tells its account the output tokens at its release, once', () => {
    const { charge, told } = queued();
    charge.grow(10);
    charge.release();
    charge.release();
    expect(told).toEqual(['grown', 'released', '7 ended with 10', 'released']);
  });

  it('the charge of a dispatched request tells its account every 64 tokens', () => {
    const { charge, told } = queued();
    for (const tokens of [63, 64, 127, 128]) charge.grow(tokens);
    expect(told.filter((line) => line !== 'grown')).toEqual(['7 has 64', '7 has 128']);
  });

  it('the charge of a dispatched request that is evicted is refunded, and does not end a second time', () => {
    const { charge, told } = queued();
    charge.evicted();
    charge.evicted();
    charge.release();
    expect(told).toEqual(['7 refunded', 'released']);
  });

  it('the charge of a dispatched request ends with the tokens that the engine has counted', () => {
    const { charge, told } = queued();
    charge.grow(10);
    charge.answered({ outputTokens: 12 } as never);
    charge.release();
    expect(told.at(-1)).toBe('7 ended with 12');
  });
});
