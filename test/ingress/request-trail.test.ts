import { describe, expect, it } from 'vitest';
import { RequestTrail } from '../../dist/src/ingress/request-trail.js';

/** A decision log that writes down what it is told, whose decisions make as many records as are given. */
function trailOf(headers: Readonly<Record<string, string>> = {}) {
  const told: unknown[][] = [];
  const log = {
    made: 7,
    begin: (id: string, columns: boolean) => void told.push(['begin', id, columns]),
    decided: (before: number, series: number, waitedMs: number) =>
      void told.push(['decided', before, series, waitedMs]),
    refused: (record: number) => told.push(['refused', record]) > 0,
    refuse: (id: string | undefined) => void told.push(['refuse', id]),
    abandoned: (record: number) => void told.push(['abandoned', record]),
  };
  const services = { trail: log, observe: { allowExplain: true } };
  const map = { get: (name: string) => headers[name] } as never;
  const trail = new RequestTrail(services as never);
  const decide = (records: number, traced = false) => {
    const before = trail.begin(map, traced);
    log.made += records;
    trail.decided(before, 1, 2, traced);
  };
  return { trail, told, decide, refuse: () => trail.refused(map, 1, {} as never) };
}

describe('the trail of a request', () => {
  it('the trail of a request has the id that the request came with', () => {
    const { trail, decide } = trailOf({ 'x-request-id': 'mine' });
    expect(trail.id).toBeUndefined();
    decide(1);
    expect([trail.id, trail.generatedId]).toEqual(['mine', undefined]);
  });

  it('the trail of a request that came without an id has one of its own, the same for all decisions', () => {
    const { trail, decide } = trailOf();
    decide(1);
    const id = trail.generatedId;
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    decide(1);
    expect([trail.id, trail.generatedId]).toEqual([id, id]);
  });

  it('the trail of a request notes a refusal in the last record of its decisions', () => {
    const { told, decide, refuse } = trailOf();
    decide(2);
    refuse();
    expect(told.at(-1)).toEqual(['refused', 8]);
  });

  it('the trail of a request whose decisions made no record notes a refusal in one of its own', () => {
    const { trail, told, decide, refuse } = trailOf({ 'x-request-id': 'mine' });
    decide(0);
    trail.abandoned();
    refuse();
    expect(told.slice(-2)).toEqual([
      ['decided', 7, 1, 2],
      ['refuse', 'mine'],
    ]);
  });

  it('the trail of a traced request names the records of the decision that was made last', () => {
    const { trail, decide } = trailOf();
    decide(2, true);
    expect(trail.made).toEqual({ first: 7, count: 2 });
    decide(0, true);
    expect(trail.made).toBeUndefined();
  });

  it('the trail of a request keeps all columns where it is traced, or asks for them', () => {
    const columns = (headers: Readonly<Record<string, string>>, traced: boolean) => {
      const { told, decide } = trailOf({ 'x-request-id': 'mine', ...headers });
      decide(1, traced);
      return told[0]![2];
    };
    expect([columns({}, false), columns({}, true), columns({ 'x-pointsman-explain': '1' }, false)]).toEqual([
      false,
      true,
      true,
    ]);
  });
});
