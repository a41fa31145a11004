import { describe, expect, it } from 'vitest';
import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { loadConfiguration } from '../../dist/src/config/load.js';
import { definePlugin, z } from '../../dist/src/scheduling/plugin.js';
import { requestedProfile } from '../../dist/src/scheduling/profile-handlers/requested-profile.js';
import { load, refusal } from '../config/configuration-text.ts';
import { ProfilePool, role } from './profile-pool.ts';

const ROLES = [role('decode'), role('prefill')];

/** A configuration of a handler, filters by role and two profiles, or others. */
function text(
  handler: string,
  profiles: Readonly<Record<string, string>> = { decode: 'decode-filter', prefill: 'prefill-filter' },
  plugins: readonly string[] = [],
) {
  const named = Object.entries(profiles).map(
    ([name, filter]) => `- {name: ${name}, plugins: [{pluginRef: ${filter}}]}\n`,
  );
  const types = ['decode-filter', 'prefill-filter', 'always-disagg-pd-decider', 'prefix-based-pd-decider'];
  return (
    `plugins:\n- ${handler}\n${types.map((type) => `- {type: ${type}}\n`).join('')}` +
    `${plugins.map((plugin) => `- ${plugin}\n`).join('')}schedulingProfiles:\n${named.join('')}`
  );
}

const noProfileFor = (name: string) => ({
  code: 'ResourceExhausted',
  message: expect.stringContaining(`failed to find target endpoint: there is no profile "${name}"`) as string,
  reason: undefined,
});

describe('header-profile-handler', () => {
  const HANDLER = '{type: header-profile-handler}';
  const pool = (handler = HANDLER, profiles?: Readonly<Record<string, string>>) =>
    new ProfilePool(load(text(handler, profiles), true), ROLES);

  it.each([
    ['without the header', {}, { decode: 'pod-0' }],
    ['with a blank header', { 'epp-profile': '  ' }, { decode: 'pod-0' }],
    ['that names one', { 'epp-profile': ' prefill ' }, { prefill: 'pod-1' }],
  ])('header-profile-handler runs for a request %s one profile', (_what, headers, picks) => {
    expect(pool().picks({ headers: headers as Record<string, string> })).toEqual(picks);
  });

  it.each(['nope', 'PREFILL'])('header-profile-handler turns a request for the unknown profile %s away', (name) => {
    expect(pool().schedule({ headers: { 'epp-profile': name } })).toMatchObject(noProfileFor(name));
  });

  it('header-profile-handler reads another header and has another default by its parameters, which are trimmed', () => {
    const each = pool('{type: header-profile-handler, parameters: {headerName: " X-P ", defaultProfile: " prefill "}}');
    expect(each.picks()).toEqual({ prefill: 'pod-1' });
    expect(each.picks({ headers: { 'x-p': 'decode' } })).toEqual({ decode: 'pod-0' });
  });

  it('header-profile-handler runs the only profile, whatever the header says', () => {
    expect(pool(HANDLER, { any: 'decode-filter' }).picks({ headers: { 'epp-profile': 'nope' } })).toEqual({
      any: 'pod-0',
    });
  });

  it('header-profile-handler warns of a default that is no profile', () => {
    const handler = '{type: header-profile-handler, parameters: {defaultProfile: zzz}}';
    expect(load(text(handler), true).warnings.join()).toContain('there is no profile "zzz"');
    expect(pool(handler).schedule()).toMatchObject(noProfileFor('zzz'));
  });

  it('header-profile-handler is experimental', () => {
    expect(refusal(text(HANDLER))).toContain('has Alpha stability level');
  });
});

describe('data-parallel-profile-handler', () => {
  const one = { default: 'decode-filter' };
  const pool = (parameters: string, profiles: Readonly<Record<string, string>> = one) =>
    new ProfilePool(load(text(`{type: data-parallel-profile-handler, parameters: ${parameters}}`, profiles)), ROLES);

  it.each([
    ['8000 unless it is told another', '{}', 8000],
    ['what it is told', '{primaryPort: 9000}', 9000],
  ])(
    'data-parallel-profile-handler sends the request to the primary port, %s, and names the rank in a header',
    (_what, parameters, port) => {
      const placement = pool(parameters).place();
      expect(placement.endpoints[0]!.address).toBe(`10.0.0.1:${port}`);
      expect([...placement.headers]).toEqual([['x-data-parallel-host-port', '10.0.0.1:8000']]);
      expect(placement.picks.get('default')![0]!.address).toBe('10.0.0.1:8000');
    },
  );

  it('data-parallel-profile-handler leaves the port of the rank with a primaryPort of 0', () => {
    const placement = pool('{primaryPort: 0}').place();
    expect(placement.endpoints[0]!.address).toBe('10.0.0.1:8000');
    expect(placement.headers.size).toBe(0);
  });

  it.each(['70000', '-1'])('data-parallel-profile-handler refuses the port %s', (port) => {
    const handler = `{type: data-parallel-profile-handler, parameters: {primaryPort: ${port}}}`;
    expect(refusal(text(handler, one))).toContain(`invalid primaryPort: must be between 1 and 65535, got ${port}`);
  });

  it('data-parallel-profile-handler turns every request away with several profiles, and says so when it is loaded', () => {
    const two = { a: 'decode-filter', b: 'decode-filter' };
    const loaded = load(text('{type: data-parallel-profile-handler}', two));
    expect(loaded.warnings.join()).toContain('runs one profile, but there are 2');
    expect(pool('{}', two).schedule()).toMatchObject({ code: 'ResourceExhausted' });
  });

  it('data-parallel-profile-handler is deprecated for single-profile-handler', () => {
    expect(load(text('{type: data-parallel-profile-handler}', one)).warnings.join()).toContain(
      'plugin type "data-parallel-profile-handler" is deprecated: use "single-profile-handler"',
    );
  });
});

describe('pd-profile-handler', () => {
  const LONG = 'w'.repeat(2000);
  const pool = (parameters: string, plugins: readonly string[] = [], profiles?: Readonly<Record<string, string>>) =>
    new ProfilePool(load(text(`{type: pd-profile-handler, parameters: ${parameters}}`, profiles, plugins)), ROLES);
  const ALWAYS = '{deciderPluginName: always-disagg-pd-decider}';

  it('pd-profile-handler picks a prefill endpoint when its decider says so, and sets no header by itself', () => {
    const placement = pool(ALWAYS).place();
    expect([...placement.picks.keys()]).toEqual(['decode', 'prefill']);
    expect(placement.headers.size).toBe(0);
  });

  it('pd-profile-handler asks the prefix-based-pd-decider unless it is told another', () => {
    const named = '{type: prefix-based-pd-decider, name: d, parameters: {nonCachedTokens: 16}}';
    expect(pool('{}').picks({ prompt: LONG })).toEqual({ decode: 'pod-0' });
    expect(Object.keys(pool('{deciderPluginName: d}', [named]).picks({ prompt: LONG }))).toEqual(['decode', 'prefill']);
  });

  it('pd-profile-handler has its own profile names', () => {
    const each = pool(`{decodeProfile: d, prefillProfile: p, deciderPluginName: always-disagg-pd-decider}`, [], {
      p: 'prefill-filter',
      d: 'decode-filter',
    });
    expect(each.picks()).toEqual({ d: 'pod-0', p: 'pod-1' });
  });

  it('pd-profile-handler sends the request to a primary port and names the rank, when it has one', () => {
    const placement = pool('{primaryPort: 9000, deciderPluginName: always-disagg-pd-decider}').place();
    expect(placement.endpoints[0]!.address).toBe('10.0.0.1:9000');
    expect(placement.headers.get('x-data-parallel-host-port')).toBe('10.0.0.1:8000');
  });

  it.each([
    ['{deciderPluginName: ""}', 'decider plugin name is not defined'],
    ['{deciderPluginName: nope}', 'plugin "nope" is not defined'],
    ['{deciderPluginName: decode-filter}', 'is of kind filter, expected decider'],
    ['{primaryPort: -1}', 'invalid primaryPort: must be between 1 and 65535'],
  ])('pd-profile-handler refuses %s', (parameters, message) => {
    expect(refusal(text(`{type: pd-profile-handler, parameters: ${parameters}}`))).toContain(message);
  });

  it('pd-profile-handler warns of what is deprecated: itself, and parameters', () => {
    const parameters = '{prefixPluginType: a, prefixPluginName: b, primaryPort: 8000}';
    const warnings = load(text(`{type: pd-profile-handler, parameters: ${parameters}}`)).warnings.join('\n');
    expect(warnings).toContain('plugin type "pd-profile-handler" is deprecated: use "disagg-profile-handler"');
    for (const text of ['prefixPluginType', 'prefixPluginName', 'primaryPort'].map(
      (field) => `${field} is deprecated`,
    )) {
      expect(warnings).toContain(text);
    }
  });

  it.each(['disagg-headers-handler', 'prefill-header-handler'])(
    'pd-profile-handler tells the prefill endpoint with a %s',
    (type) => {
      const each = pool(ALWAYS, [`{type: ${type}}`]);
      expect(each.place().headers).toEqual(
        new Map([
          ['x-prefiller-host-port', '10.0.0.2:8000'],
          ['x-encoder-hosts-ports', undefined],
        ]),
      );
      expect(load(text('{type: pd-profile-handler}', undefined, [`{type: ${type}}`])).warnings.join()).toContain(
        `plugin type "${type}" is deprecated: use "disagg-profile-handler"`,
      );
    },
  );

  it('pd-profile-handler tells the picks of other profiles when the header handler is told their names', () => {
    const parameters = '{prefillProfile: p, deciderPluginName: always-disagg-pd-decider}';
    const handler = '{type: disagg-headers-handler, parameters: {prefillProfile: decode, encodeProfile: p}}';
    const { headers } = pool(parameters, [handler], { p: 'prefill-filter', decode: 'decode-filter' }).place();
    expect([...headers.values()]).toEqual(['10.0.0.1:8000', '10.0.0.2:8000']);
  });
});

describe('a hook plugin in several profiles', () => {
  /** Keeps the endpoints whose role is the name of the profile. */
  const byProfile = definePlugin({
    type: 'by-profile',
    kinds: ['filter'],
    stability: 'Stable',
    doc: 'A test.',
    parameters: z.strictObject({}),
    host: () => ({
      filter: (request, endpoints, column) => {
        for (const slot of endpoints.slots) {
          column[slot] = endpoints.at(slot)!.endpoint.labels['llm-d.ai/role'] === request.profile ? 1 : 0;
        }
      },
      placed: (request) => {
        expect(request.profile).toBe('');
      },
    }),
  });

  it('a hook plugin in several profiles is told which one it is asked for', () => {
    const handler = '{type: disagg-profile-handler, parameters: {deciders: {prefill: always-disagg-pd-decider}}}';
    const body = text(handler, { decode: 'by-profile', prefill: 'by-profile' }, ['{type: by-profile}']);
    const head = 'apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n';
    const options = { allowExperimental: false, registry: [...builtinPlugins, byProfile] };
    const each = new ProfilePool(loadConfiguration({ text: head + body }, options), ROLES, [byProfile]);
    expect(each.picks()).toEqual({ decode: 'pod-0', prefill: 'pod-1' });
  });
});

describe('session affinity with a profileName', () => {
  it('session affinity with a profileName sticks to the pick of that profile, in that profile only', () => {
    const affinity = '{type: session-affinity-filter, parameters: {strategy: session_id, profileName: prefill}}';
    const handler = '{type: disagg-profile-handler, parameters: {deciders: {prefill: always-disagg-pd-decider}}}';
    const body = text(handler, { decode: 'decode-filter', prefill: 'session-affinity-filter' }, [affinity]);
    const each = new ProfilePool(load(body, true), [role('decode'), role('both'), role('both'), role('both')]);
    const headers = { 'x-session-id': 's' };
    const first = each.picks({ headers });
    const seen = Array.from({ length: 10 }, () => each.picks({ headers }).prefill);
    expect(new Set(seen)).toEqual(new Set([first.prefill]));
    expect(first.prefill).not.toBe(first.decode);
  });
});

describe('x-pointsman-profile', () => {
  const handler = '{type: disagg-profile-handler, parameters: {deciders: {prefill: always-disagg-pd-decider}}}';
  const pool = () => new ProfilePool(load(text(handler)), ROLES, [], requestedProfile);

  it('x-pointsman-profile runs the profile that the request asks for, alone, and takes out what a client told the sidecar', () => {
    const placement = pool().place({ headers: { 'x-pointsman-profile': ' prefill ' } });
    expect([...placement.picks.keys()]).toEqual(['prefill']);
    expect(placement.endpoints[0]!.endpoint.name).toBe('pod-1');
    expect([...placement.headers.values()]).toEqual([undefined, undefined]);
  });

  it.each(['', '  '])('x-pointsman-profile leaves the decision to the handler when it says "%s"', (value) => {
    expect(Object.keys(pool().picks({ headers: { 'x-pointsman-profile': value } }))).toEqual(['decode', 'prefill']);
  });

  it('x-pointsman-profile is a 400 for an unknown profile, which names those that there are', () => {
    expect(pool().schedule({ headers: { 'x-pointsman-profile': 'x' } })).toMatchObject({
      code: 'BadRequest',
      message: 'x-pointsman-profile: there is no profile "x"; there are decode, prefill',
    });
  });
});
