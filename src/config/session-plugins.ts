import { durationMilliseconds } from '../scheduling/duration.js';
import type { SessionRequest } from '../scheduling/plugin.js';
import type { ConfigurationDocument } from './document.js';
import type { LoadedPlugin, PluginSet } from './plugin-set.js';
import type { FlowControlConfig } from './schema.js';
import { shown } from './validation.js';

export type SessionsConfig = NonNullable<FlowControlConfig['sessions']>;

interface Asking {
  readonly plugin: LoadedPlugin;
  readonly asked: SessionRequest;
}

/**
 * The settings of sessions: those of the section, else what a plugin asks for by being named; undefined = neither says
 * anything.
 * @param defaults what a plugin leaves open
 * @param enabled whether the feature gate flowControl is on
 */
export function sessionsOf(
  given: SessionsConfig | undefined,
  defaults: SessionsConfig,
  enabled: boolean,
  plugins: PluginSet,
  document: ConfigurationDocument,
  warnings: string[],
): SessionsConfig | undefined {
  const [first, ...others] = plugins.list().flatMap((plugin) => asking(plugin));
  if (first === undefined) return given;
  const { plugin, asked } = first;
  const warn = (about: LoadedPlugin, text: string) => {
    warnings.push(document.warning(about.path ?? [], `"${about.name}" ${text}`));
  };
  if (!enabled) {
    warn(plugin, 'turns session admission on only with flow control: add flowControl to featureGates');
    return given;
  }
  for (const other of others) warn(other.plugin, `is a second plugin for sessions: those of "${plugin.name}" count`);
  if (given === undefined) return { ...defaults, ...asked, identity: agentIdentity(plugins) ?? defaults.identity };
  if (!agrees(given, asked)) {
    const wanted = Object.entries(asked).map(([field, value]) => `${field} ${value}`);
    const text = `counts, not what "${plugin.name}" stands for (${wanted.join(', ')}): remove one of them`;
    warnings.push(document.warning(['flowControl', 'sessions'], text));
  }
  return given;
}

/** Name of the plugin by which such a plugin of llm-d-router tells sessions apart; undefined = there is none. */
function agentIdentity(plugins: PluginSet): string | undefined {
  return plugins.list('header-processor').find(({ definition }) => definition.produces?.includes('agent-identity'))
    ?.name;
}

/** The attribute that names sessions of requests; undefined = prompts do. @param identity of flowControl.sessions */
export function sessionAttributeOf(identity: string, plugins: PluginSet): string | undefined {
  const plugin = plugins.list().find(({ name }) => name === identity);
  return plugin?.definition.sessionAttribute?.(plugin.parameters, plugin.name);
}

/** @throws when the identity names no plugin by which sessions can be told apart */
export function checkIdentity(identity: string, plugins: PluginSet, document: ConfigurationDocument): void {
  if (identity === 'auto' || sessionAttributeOf(identity, plugins) !== undefined) return;
  const able = plugins.list().flatMap(({ name, definition }) => (definition.sessionAttribute ? [shown(name)] : []));
  const which = able.length === 0 ? 'add a session-id-producer or an agent-identity to plugins' : able.join(', ');
  throw document.error(
    ['flowControl', 'sessions', 'identity'],
    `no plugin ${shown(identity)} names sessions: "auto" tells them apart by prompts, else ${which}`,
  );
}

function asking(plugin: LoadedPlugin): readonly Asking[] {
  const asked = plugin.definition.sessionSettings?.(plugin.parameters);
  return asked === undefined ? [] : [{ plugin, asked }];
}

/** Whether the section says all that is asked. */
function agrees(given: SessionsConfig, asked: SessionRequest): boolean {
  const isSame = (field: 'maxWait' | 'idleLease' | 'forgetAfter') => {
    const [one, other] = [given[field], asked[field]];
    if (other === undefined) return true;
    return one !== undefined && durationMilliseconds(one) === durationMilliseconds(other);
  };
  const hasSame = (field: 'capacityTokens' | 'usableCache') => [undefined, given[field]].includes(asked[field]);
  return (
    given.mode === asked.mode &&
    (['maxWait', 'idleLease', 'forgetAfter'] as const).every(isSame) &&
    (['capacityTokens', 'usableCache'] as const).every(hasSame)
  );
}
