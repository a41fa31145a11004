import type { PluginDefinition } from '../plugin.js';
import type { ProfileHandler } from '../profile-handler.js';
import type { HandlerSettings } from '../program.js';
import { SINGLE_PROFILE_HANDLER, singleProfile } from './single-profile.js';

/**
 * The profile handler of a shard. The default one needs no definition.
 * @throws Error for settings of an unchecked configuration
 */
export function makeProfileHandler(
  { name, type, parameters, deciders }: HandlerSettings,
  definitions: ReadonlyMap<string, PluginDefinition>,
): ProfileHandler {
  if (type === SINGLE_PROFILE_HANDLER) return singleProfile;
  const make = definitions.get(type)?.profileHandler;
  if (make === undefined) throw new Error(`plugin "${name}": type "${type}" is no profile handler`);
  return make(parameters, {
    name,
    decider: (wanted) => {
      const settings = deciders.find((each) => each.name === wanted);
      const decide = settings === undefined ? undefined : definitions.get(settings.type)?.decider;
      if (decide === undefined) throw new Error(`plugin "${name}" refers to "${wanted}", which is no decider`);
      return decide(settings!.parameters);
    },
  });
}
