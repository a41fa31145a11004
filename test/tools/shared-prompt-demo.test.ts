import { describe, expect, it } from 'vitest';
import { pointsman } from '../serve/program.ts';

describe('pointsman demo --shared-prompt', () => {
  it('the demo of one system prompt shows the default on one server beside marginal cost on all', () => {
    const { status, stdout } = pointsman('demo', '--shared-prompt', '--seconds=3', '--load=0.7', '--metrics-port=0');
    expect({ status, stdout }).toMatchObject({ status: 0 });
    const [, all] = /^ +all(.*)$/m.exec(stdout)!;
    const [weights, cost] = [...all!.matchAll(/ms +\d+ ms +(\d+(?: \d+){3})/g)].map(([, counts]) =>
      counts!.split(' ').map(Number),
    );
    expect(weights!.filter((count) => count > 0)).toEqual([51]);
    expect(cost!.filter((count) => count > 0).length).toBeGreaterThan(1);
    expect(stdout).toContain('marginal-cost-scorer');
  }, 60_000);
});
