import { afterEach, describe, expect, it } from 'vitest';
import { type OptionalKind, resourceName, type ServedKind, ServedKinds } from '../../dist/src/kubernetes/kinds.js';
import { eventually } from '../tools/gateway/client.ts';
import { clientOf } from './observed-reflector.ts';
import { json, type Script, ScriptedServer, status } from './scripted-server.ts';

const cleanups: (() => void)[] = [];

afterEach(() => {
  for (const cleanup of cleanups.splice(0).reverse()) cleanup();
});

const OBJECTIVES = json({ resources: [{ name: 'inferenceobjectives' }, { name: 'inferencemodelrewrites' }] });
const ABSENT = status(404, 'NotFound');
/** Answers of one probe: of the newer group, of the older one, and of the newer one's v1 (absent by default). */
type Probe = readonly [Script, Script, Script?];
const NEWER: Probe = [OBJECTIVES, ABSENT];
const NONE: Probe = [ABSENT, ABSENT];

/** Follows a server with these answers; the kinds that were told, by the name that counts. */
async function follow(regularMs: number, ...probes: Probe[]) {
  const left = [
    probes.map(([newer]) => newer),
    probes.map(([, older]) => older),
    probes.map(([, , stable]) => stable ?? ABSENT),
  ] as const;
  const byGroup: Script = (request, response) => {
    const isStable = request.url!.endsWith('/llm-d.ai/v1');
    const answer = left[isStable ? 2 : request.url!.includes('/llm-d.ai/') ? 0 : 1].shift()!;
    answer(request, response);
  };
  const server = await ScriptedServer.start(...probes.flatMap(() => [byGroup, byGroup, byGroup]));
  cleanups.push(() => server.close());
  const client = clientOf(server.url);
  cleanups.push(() => client.close());
  const told: string[] = [];
  const tell = (optional: OptionalKind, { kind }: ServedKind) => {
    const version = kind?.version === 'v1' ? '/v1' : '';
    told.push(`${optional}: ${kind === undefined ? 'off' : `${resourceName(kind)}${version}`}`);
  };
  const kinds = new ServedKinds(client, tell, () => {}, { regularMs, againMs: 20 });
  cleanups.push(() => kinds.stop());
  void kinds.start();
  return { server, told };
}

describe('optional kinds', () => {
  it('optional kinds are told after the first answer, those that are absent as well', async () => {
    const { told } = await follow(60_000, NEWER);
    await eventually('all are told', () => told.length === 3);
    expect(told).toEqual([
      'objectives: inferenceobjectives.llm-d.ai',
      'rewrites: inferencemodelrewrites.llm-d.ai',
      'models: off',
    ]);
  });

  it('optional kinds are read in version v1 of their group where it is served, and again in the older one without it', async () => {
    const stable = json({ resources: [{ name: 'inferenceobjectives' }] });
    const both: Probe = [OBJECTIVES, ABSENT, stable];
    const { told } = await follow(20, NEWER, both, both, NEWER, NEWER);
    await eventually('all are told', () => told.length === 5);
    expect(told.slice(3)).toEqual([
      'objectives: inferenceobjectives.llm-d.ai/v1',
      'objectives: inferenceobjectives.llm-d.ai',
    ]);
  });

  it('optional kinds of both groups are asked for at once', async () => {
    const { promise: bothAsked, resolve } = Promise.withResolvers<void>();
    let asked = 0;
    const afterBoth =
      (answer: Script): Script =>
      (request, response) => {
        if (++asked === 2) resolve();
        void bothAsked.then(() => answer(request, response));
      };
    const { told } = await follow(60_000, [afterBoth(OBJECTIVES), afterBoth(ABSENT)]);
    await eventually('all are told', () => told.length === 3);
  });

  it('optional kinds that a server does not know yet, just after its start, are asked for again soon', async () => {
    const { told } = await follow(60_000, NONE, NEWER);
    await eventually('they are served', () => told.length === 5);
    expect(told.slice(3)).toEqual([
      'objectives: inferenceobjectives.llm-d.ai',
      'rewrites: inferencemodelrewrites.llm-d.ai',
    ]);
  });

  it('optional kinds stay on through one answer that lacks them', async () => {
    const { server, told } = await follow(20, NEWER, NEWER, NONE, NEWER, NEWER);
    await eventually('all answers were given', () => server.requests.length > 13);
    expect(told).toHaveLength(3);
  });

  it('optional kinds are off after two answers that lack them', async () => {
    const { told } = await follow(20, NEWER, NEWER, NONE, NONE);
    await eventually('they are off', () => told.length === 5);
    expect(told.slice(3)).toEqual(['objectives: off', 'rewrites: off']);
  });

  it('optional kinds stay on while the server does not answer', async () => {
    const away: Probe = [status(503, 'ServiceUnavailable'), status(503, 'ServiceUnavailable')];
    const { server, told } = await follow(20, NEWER, NEWER, away, away, NEWER);
    await eventually('all answers were given', () => server.requests.length > 13);
    expect(told).toHaveLength(3);
  });
});
