import { durationMilliseconds } from '../scheduling/duration.js';
import type { SessionRequest } from '../scheduling/plugin.js';
import type { ConfigurationDocument } from './document.js';
import type { LoadedPlugin, PluginSet } from './plugin-set.js';
import type { FlowControlConfig } from './schema.js';

type SessionsConfig = NonNullable<FlowControlConfig['sessions']>;

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
  for (const identity of plugins.list('header-processor')) {
    if (!identity.definition.produces?.includes('agent-identity')) continue;
    warn(identity, 'names the flow of a request: sessions are recognised by their prompts, not by its headers');
  }
  if (given === undefined) return { ...defaults, ...asked };
  if (!agrees(given, asked)) {
    const wanted = Object.entries(asked).map(([field, value]) => `${field} ${value}`);
    const text = `counts, not what "${plugin.name}" stands for (${wanted.join(', ')}): remove one of them`;
    warnings.push(document.warning(['flowControl', 'sessions'], text));
  }
  return given;
}

function asking(plugin: LoadedPlugin): readonly Asking[] {
  const asked = plugin.definition.sessionSettings?.(plugin.parameters);
  return asked === undefined ? [] : [{ plugin, asked }];
}

function agrees(given: SessionsConfig, { mode, maxWait = given.maxWait }: SessionRequest): boolean {
  return given.mode === mode && durationMilliseconds(given.maxWait) === durationMilliseconds(maxWait);
}
