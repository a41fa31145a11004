import { afterEach, describe, expect, it } from 'vitest';
import { ObjectProblem } from '../../dist/src/kubernetes/object-copy.js';
import { eventually } from '../tools/gateway/client.ts';
import { clientOf, ObservedReflector, readNamed, VLLM } from './observed-reflector.ts';
import {
  added,
  bookmark,
  cutWatch,
  deleted,
  errorEvent,
  json,
  object,
  type Script,
  ScriptedServer,
  status,
  watch,
} from './scripted-server.ts';

const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

type Options = ConstructorParameters<typeof ObservedReflector>[1];

async function follow(script: readonly Script[], options: Options = {}) {
  const server = await ScriptedServer.start(...script);
  const observed = new ObservedReflector(clientOf(server.url), options);
  cleanups.push(
    () => server.close(),
    () => observed.stop(),
  );
  return { server, observed };
}

const first = (version: number, ...names: string[]) => [
  ...names.map((name) => added(name, version)),
  bookmark(version, true),
];

describe('a first state over the watch', () => {
  it('a first state over the watch is asked for with bookmarks and an end mark', async () => {
    const { server, observed } = await follow([watch(first(7, 'a'))], { labels: VLLM, name: 'a' });
    await eventually('it is complete', () => observed.reflector.synced);
    expect(Object.fromEntries(server.requests[0]!.searchParams)).toMatchObject({
      watch: 'true',
      sendInitialEvents: 'true',
      resourceVersionMatch: 'NotOlderThan',
      allowWatchBookmarks: 'true',
      labelSelector: 'app=vllm',
      fieldSelector: 'metadata.name=a',
    });
    expect(server.requests[0]!.pathname).toBe('/api/v1/namespaces/llm/pods');
  });

  it('a first state over the watch counts only when it is complete, and then as one batch', async () => {
    const { observed } = await follow([watch([added('a', 1), added('b', 2)], 'breaks'), watch(first(3, 'c', 'd'))]);
    await eventually('it is complete', () => observed.reflector.synced);
    expect(observed.told).toEqual(['+c', '+d', '|']);
  });

  it('a first state over the watch is listed in pages of 500 when the server does not offer it', async () => {
    const { server, observed } = await follow([
      status(422, 'Invalid'),
      json({ metadata: { resourceVersion: '5', continue: 'next page' }, items: [object('a', 1)] }),
      json({ metadata: { resourceVersion: '5' }, items: [object('b', 2)] }),
      watch([added('c', 6)]),
    ]);
    await eventually('the watch goes on', () => observed.names.length === 3);
    expect(server.requests.map(({ searchParams }) => searchParams.get('limit'))).toEqual([null, '500', '500', null]);
    expect(server.requests[2]!.searchParams.get('continue')).toBe('next page');
    expect(server.requests[3]!.searchParams.get('resourceVersion')).toBe('5');
  });

  it('a first state over the watch is listed when a server sends objects or nothing, and no end mark', async () => {
    const { observed } = await follow([
      watch([added('a', 1)]),
      json({ metadata: { resourceVersion: '5' }, items: [object('a', 1), object('b', 2)] }),
      json({ items: [] }),
      watch([added('c', 6)]),
    ]);
    await eventually('the watch goes on', () => observed.names.length === 3);
  });

  it('a first state over the watch has no other names or labels, even when a server does not apply selectors', async () => {
    const labelled = (name: string, app: string) => {
      const { type, object: pod } = added(name, 1);
      return { type, object: { ...pod, metadata: { ...pod.metadata, labels: { app } } } };
    };
    const { observed } = await follow(
      [
        watch([
          labelled('a', 'vllm'),
          labelled('b', 'web'),
          bookmark(2, true),
          labelled('c', 'vllm'),
          labelled('a', 'web'),
          added('d', 3),
        ]),
      ],
      { labels: VLLM },
    );
    await eventually('the relabelled one left', () => observed.names.join() === 'c');
    expect(observed.told).not.toContain('+b');
    expect(observed.told).not.toContain('+d');
  });

  it('a first state over the watch of no objects is told all the same', async () => {
    const { observed } = await follow([watch(first(1))]);
    await eventually('it is complete', () => observed.reflector.synced);
    expect(observed.told).toEqual(['|']);
  });
});

describe('a first page', () => {
  it('a first page that holds all objects is the first state, and the watch begins at its version', async () => {
    const { server, observed } = await follow(
      [json({ metadata: { resourceVersion: '5' }, items: [object('a', 1), object('b', 2)] }), watch([deleted('a', 6)])],
      { pageFirst: true },
    );
    await eventually('the watch goes on', () => observed.names.join() === 'b');
    expect(observed.told).toEqual(['+a', '+b', '|', '-a', '|']);
    expect(server.requests.map(({ searchParams }) => searchParams.get('limit'))).toEqual(['500', null]);
    expect(server.requests[1]!.searchParams.get('resourceVersion')).toBe('5');
  });

  it('a first page that is followed by another one is left for a first state over the watch', async () => {
    const { server, observed } = await follow(
      [
        json({ metadata: { resourceVersion: '5', continue: 'next page' }, items: [object('gone', 1)] }),
        watch(first(6, 'a', 'b')),
      ],
      { pageFirst: true },
    );
    await eventually('it is complete', () => observed.reflector.synced);
    expect(observed.told).toEqual(['+a', '+b', '|']);
    expect(server.requests[1]!.searchParams.get('sendInitialEvents')).toBe('true');
  });

  it('a first page is asked for again after 410, and the old state serves meanwhile', async () => {
    const { observed } = await follow(
      [
        json({ metadata: { resourceVersion: '5' }, items: [object('a', 1), object('b', 2)] }),
        status(410, 'Expired'),
        json({ metadata: { resourceVersion: '9' }, items: [object('b', 2), object('c', 8)] }),
      ],
      { pageFirst: true },
    );
    await eventually('the new state is there', () => observed.names.join() === 'b,c');
    expect(observed.least).toBe(2);
    expect(observed.reflector.counts.relists).toEqual(
      new Map([
        ['start', 1],
        ['expired', 1],
      ]),
    );
  });

  it('a list without elements (items: null) keeps the last state, and is asked for again', async () => {
    const { server, observed } = await follow(
      [
        json({ metadata: { resourceVersion: '5' }, items: [object('a', 1), object('b', 2)] }),
        status(410, 'Expired'),
        json({ metadata: { resourceVersion: '8' }, items: null }),
        json({ metadata: { resourceVersion: '9' }, items: [object('b', 2), object('c', 8)] }),
      ],
      { pageFirst: true },
    );
    await eventually('the new state is there', () => observed.names.join() === 'b,c');
    expect(observed.least).toBe(2);
    expect(server.requests.length).toBeGreaterThanOrEqual(4);
  });
});

describe('a watch', () => {
  it('a watch goes on at its last version, which bookmarks move along, when the server ends it', async () => {
    const { server, observed } = await follow([
      watch([...first(1, 'a'), bookmark(9)], 'ends'),
      watch([added('b', 10)]),
    ]);
    await eventually('it goes on', () => observed.names.length === 2);
    expect(server.requests[1]!.searchParams.get('resourceVersion')).toBe('9');
    expect(observed.reflector.counts.relists.get('start')).toBe(1);
  });

  it('a watch begins with a first state again after 410 as a status, and the old state serves meanwhile', async () => {
    const { observed } = await follow([
      watch(first(1, 'a', 'b'), 'ends'),
      status(410, 'Expired'),
      watch(first(8, 'b', 'c')),
    ]);
    await eventually('the new state is there', () => observed.names.join() === 'b,c');
    expect(observed.told).toEqual(['+a', '+b', '|', '-a', '+b', '+c', '|']);
    expect(observed.reflector.counts.relists.get('expired')).toBe(1);
  });

  it.each([
    ['410 as an event inside a 200', errorEvent(410, 'Expired'), 'expired'],
    [
      'a version that the server does not know yet',
      errorEvent(504, 'Timeout', { causes: [{ reason: 'ResourceVersionTooLarge' }] }),
      'version too large',
    ],
  ])('a watch begins with a first state again after %s', async (_what, event, reason) => {
    const { server, observed } = await follow([
      watch([...first(1, 'a', 'b'), deleted('a', 2), event]),
      watch(first(8, 'b', 'c')),
    ]);
    await eventually('the new state is there', () => observed.names.join() === 'b,c');
    expect(server.requests[1]!.searchParams.get('sendInitialEvents')).toBe('true');
    expect(observed.reflector.counts.relists.get(reason)).toBe(1);
    expect(observed.least).toBe(1);
  });

  it('a watch keeps its state and version through an ERROR event of the server', async () => {
    const { server, observed } = await follow([
      watch([...first(4, 'a'), errorEvent(500, 'InternalError')]),
      watch([added('b', 5)]),
    ]);
    await eventually('it goes on', () => observed.names.length === 2);
    expect(server.requests[1]!.searchParams.get('resourceVersion')).toBe('4');
    expect(observed.least).toBe(1);
  });

  it('a watch goes on at its last version when it is cut inside a line', async () => {
    const { server, observed } = await follow([
      cutWatch([...first(4, 'a'), added('b', 5)]),
      json({ items: [] }),
      watch([added('b', 5)]),
    ]);
    await eventually('it goes on', () => observed.names.length === 2);
    expect(server.requests.slice(1).map(({ searchParams }) => searchParams.get('resourceVersion'))).toEqual(['4', '4']);
    expect(observed.reflector.counts.reconnects.get('connection')).toBe(1);
  });

  it('a watch begins with a first state again when the server it comes back to does not know its version yet', async () => {
    const { observed } = await follow([
      watch(first(9, 'a', 'b'), 'breaks'),
      status(504, 'Timeout', { details: { causes: [{ reason: 'ResourceVersionTooLarge' }] } }),
      watch(first(3, 'b')),
    ]);
    await eventually('the new state is there', () => observed.names.join() === 'b');
    expect(observed.reflector.counts.relists.get('version too large')).toBe(1);
    expect(observed.least).toBe(1);
  });

  it('a watch opens again after a line that is no JSON, and counts it', async () => {
    const broken: Script = (_request, response) => {
      response.writeHead(200).write(`${JSON.stringify(bookmark(4, true))}\nno json\n`);
    };
    const { observed } = await follow([broken, watch([added('a', 5)])]);
    await eventually('it goes on', () => observed.names.length === 1);
    expect(observed.reflector.counts.reconnects.get('not JSON')).toBe(1);
  });

  it('a watch opens again after a line of more than 4 MiB', async () => {
    const long: Script = (_request, response) => {
      response.writeHead(200).write(`${JSON.stringify(bookmark(4, true))}\n`);
      response.write(Buffer.alloc(5 * 1024 * 1024, 'x'));
    };
    const { observed } = await follow([long, watch([added('a', 5)])]);
    await eventually('it goes on', () => observed.names.length === 1);
    expect(observed.reflector.counts.reconnects.get('line too long')).toBe(1);
  });

  it('a watch counts a pod that was deleted and made again under one name as removed and set', async () => {
    const again = { type: 'ADDED', object: object('a', 5, {}, 'another uid') };
    const { observed } = await follow([watch(first(1, 'a'), 'ends'), status(410), watch([again, bookmark(5, true)])]);
    await eventually('the new one is there', () => observed.reflector.values()[0]?.uid === 'another uid');
    expect(observed.told.slice(2)).toEqual(['-a', '+a', '|']);
  });

  it('a watch tells what came before an error in one piece', async () => {
    const { observed } = await follow([
      watch([...first(1, 'a'), added('b', 2), errorEvent(500, 'InternalError')]),
      watch([]),
    ]);
    await eventually('the error was met', () => observed.reflector.counts.reconnects.size > 0);
    expect(observed.told.filter((one) => one !== '|')).toEqual(['+a', '+b']);
  });
});

describe('a server that refuses', () => {
  it('a server that refuses is asked again after the time that a 429 names', async () => {
    const { server, observed } = await follow([
      status(429, 'TooManyRequests', { details: { retryAfterSeconds: 0.05 } }),
      status(429, 'TooManyRequests', {}, { 'retry-after': '0' }),
      watch(first(1, 'a')),
    ]);
    await eventually('the state is there', () => observed.reflector.synced);
    expect(server.requests).toHaveLength(3);
    expect(observed.reflector.counts.reconnects.get('429')).toBe(2);
  });

  it('7. token expired: a server that refuses fresh credentials as well is reported once', async () => {
    const refusal = status(401, 'Unauthorized');
    const { observed } = await follow([refusal, refusal, refusal, watch(first(1, 'a'))]);
    await eventually('it goes on', () => observed.reflector.synced);
    expect(observed.reports).toEqual(['the API server does not accept the credentials: Unauthorized']);
  });

  it('a server that refuses with 403 is reported once, with resource, verbs and namespace', async () => {
    const refusal = status(403, 'Forbidden', { message: 'pods is forbidden' });
    const { observed } = await follow([refusal, refusal, refusal]);
    await eventually('it is reported', () => observed.reflector.counts.reconnects.get('403') === 3);
    expect(observed.reports).toEqual([
      'pods: get, list, watch in namespace llm: forbidden; add the rule to the Role of the service account ' +
        '(deploy/rbac). The server says: pods is forbidden',
    ]);
    expect(observed.reflector.synced).toBe(false);
  });

  it('a server that refuses with 403 once, as just after its start, is asked again soon, and nothing is reported', async () => {
    const { observed } = await follow([watch(first(1, 'a'), 'ends'), status(403), watch([added('b', 2)])]);
    await eventually('it goes on', () => observed.names.length === 2);
    expect([observed.least, observed.reports]).toEqual([1, []]);
  });

  it('a server that refuses with 404 has no such kind: the state is empty and complete', async () => {
    const { observed } = await follow([status(404, 'NotFound')]);
    await eventually('it is absent', () => observed.reflector.state === 'absent');
    expect(observed.reflector.synced).toBe(true);
    expect(observed.reflector.problem).toBe('the cluster does not have pods; install its CRD');
  });

  it('a server that refuses with 404 at first, as just after its start, is asked again soon', async () => {
    const { observed } = await follow([status(404, 'NotFound'), watch(first(1, 'a'))], { absentRetryMs: 60_000 });
    await eventually('the state is there', () => observed.names.length === 1);
  });

  it('a server that refuses with 404 twice has lost the kind: what was there of it is gone', async () => {
    const { observed } = await follow([watch(first(1, 'a'), 'ends'), status(404), status(404)]);
    await eventually('it is absent', () => observed.reflector.state === 'absent');
    expect(observed.told).toEqual(['+a', '|', '-a', '|']);
  });

  it('a server that refuses with 404 once, as just after its start, changes nothing', async () => {
    const { observed } = await follow([watch(first(1, 'a'), 'ends'), status(404), watch([added('b', 2)])]);
    await eventually('it goes on', () => observed.names.length === 2);
    expect(observed.least).toBe(1);
  });
});

describe('an object that cannot be read', () => {
  const refuseBad = (given: unknown) => {
    const { spec } = given as { spec?: { bad?: boolean } };
    return spec?.bad === true ? new ObjectProblem('spec.bad: true is not allowed; remove it') : readNamed(given);
  };

  it('an object that cannot be read is left out and reported once a version', async () => {
    const bad = { spec: { bad: true } };
    const { observed } = await follow(
      [
        watch([added('a', 1), added('b', 2, bad), bookmark(2, true)], 'ends'),
        status(410),
        watch([added('a', 1), added('b', 2, bad), bookmark(2, true), added('b', 3, bad)]),
      ],
      { read: refuseBad },
    );
    await eventually('it has changed', () => observed.reports.length === 2);
    expect(observed.reports[0]).toBe('Pod b: spec.bad: true is not allowed; remove it; the object is left out');
    expect(observed.names).toEqual(['a']);
    expect(observed.reflector.rejected).toBe(1);
  });

  it('an object that cannot be read counts no longer when a first state comes without it', async () => {
    const { observed } = await follow(
      [watch([added('b', 2, { spec: { bad: true } }), bookmark(2, true)], 'ends'), status(410), watch(first(3, 'a'))],
      { read: refuseBad },
    );
    await eventually('the new state is there', () => observed.names.join() === 'a');
    expect(observed.reflector.rejected).toBe(0);
  });

  it('an object that cannot be read that was good before is removed, and comes back when it is good again', async () => {
    const { observed } = await follow(
      [watch([...first(1, 'a'), added('a', 2, { spec: { bad: true } }), added('a', 3)])],
      { read: refuseBad },
    );
    await eventually('all was told', () => observed.reports.length === 1);
    expect(observed.names).toEqual(['a']);
    expect(observed.reflector.rejected).toBe(0);
  });
});

it('a stopped reflector asks for nothing more', async () => {
  const { server, observed } = await follow([watch(first(1, 'a'))]);
  await eventually('the state is there', () => observed.reflector.synced);
  observed.stop();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(server.requests).toHaveLength(1);
  expect(observed.reports).toEqual([]);
});
