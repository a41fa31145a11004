import { builtinPlugins } from '../../dist/src/config/builtin-plugins.js';
import { type LoadedConfiguration, loadConfiguration } from '../../dist/src/config/load.js';

/** Loads a configuration that is given without its head. */
export function load(body: string, allowExperimental = false): LoadedConfiguration {
  const text = `apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n${body}`;
  return loadConfiguration({ text }, { allowExperimental, registry: builtinPlugins });
}

/** The one line with which a configuration is refused. */
export function refusal(body: string): string {
  try {
    load(body);
  } catch (error) {
    if ((error as Error).name !== 'ConfigurationError') throw error;
    return (error as Error).message;
  }
  throw new Error('the configuration was accepted');
}
