import { readVersioned, shapeViolations } from './api-versions.js';
import type { ConfigurationDocument } from './document.js';
import { ConfigurationError } from './error.js';
import { type EngineSignals, type IdleContext, idleSettings } from './idle-settings.js';
import {
  type ConfigurationSource,
  type LoadedConfiguration,
  type LoadOptions,
  loadDocument,
  readDocument,
} from './load.js';
import { missingFiles } from './missing-files.js';
import { PluginSet } from './plugin-set.js';
import { sharedPrefixNotes } from './shared-prefix.js';

/** All that can be said about a configuration before it runs. */
export interface Findings {
  /** In the order of the file. */
  readonly errors: readonly ConfigurationError[];
  /** Settings without effect or deprecated ones; one line each, with its place. */
  readonly warnings: readonly string[];
  /** Choices that users may not mean; one line each, with its place. */
  readonly notes: readonly string[];
  /** Undefined when it cannot be loaded. */
  readonly configuration: LoadedConfiguration | undefined;
}

export interface FindingsOptions extends LoadOptions {
  /** Engines whose metrics are known without being configured. */
  readonly engines: readonly EngineSignals[];
}

/**
 * Looks through a configuration without starting anything. A document that cannot be parsed has one error. Otherwise
 * the list has all errors of its shape, or else all errors of its plugins, or else the first error of a reference
 * between them.
 */
export function findings(source: ConfigurationSource, options: FindingsOptions): Findings {
  return findingsOf(() => readDocument(source), options);
}

/** As `findings`, of the document that `read` returns; its ConfigurationError is the one error. */
export function findingsOf(read: () => ConfigurationDocument, options: FindingsOptions): Findings {
  try {
    const document = read();
    const errors = [...shapeErrors(document, options)].sort(byPlace);
    if (errors.length > 0) return { errors, warnings: [], notes: [], configuration: undefined };
    const configuration = loadDocument(document, options);
    const context: IdleContext = {
      document,
      config: readVersioned(document).config,
      configuration,
      ...options,
    };
    const missing = missingFiles(configuration.files, document);
    const { randomPicks } = configuration;
    const warnings = [...configuration.warnings, ...randomPicks, ...idleSettings(context), ...missing.warnings];
    warnings.sort((a, b) => offset(a) - offset(b));
    const notes = [...configuration.notes, ...sharedPrefixNotes(context), ...sessionScorerNotes(context)];
    return { errors: missing.errors, warnings, notes, configuration };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { errors: [error], warnings: [], notes: [], configuration: undefined };
  }
}

function shapeErrors(document: ConfigurationDocument, options: LoadOptions): readonly ConfigurationError[] {
  const errors = shapeViolations(document);
  if (errors.length > 0) return errors;
  const { plugins } = readVersioned(document).config;
  return new PluginSet(document, options.registry, options.allowExperimental).loadUsable(plugins);
}

/** A number that grows with the place at the beginning of a warning. */
function offset(warning: string): number {
  const [, line, column] = /:(\d+):(\d+): /.exec(warning) ?? [];
  return Number(line ?? 0) * 1e6 + Number(column ?? 0);
}

function byPlace(a: ConfigurationError, b: ConfigurationError): number {
  return (a.place?.line ?? 0) - (b.place?.line ?? 0) || (a.place?.column ?? 0) - (b.place?.column ?? 0);
}

const NO_SESSIONS = 'sessions are not counted; add flowControl to featureGates, and set flowControl.sessions.mode';

/** One line for each scorer of a profile that goes by sessions which nobody counts. */
function sessionScorerNotes({ document, config, configuration, registry }: IdleContext): readonly string[] {
  if ((configuration.flowControl?.sessions.mode ?? 'off') !== 'off') return [];
  const names = configuration.plugins.flatMap(({ name, type }) =>
    registry.find((definition) => definition.type === type)?.sessionSettings === undefined ? [] : [name],
  );
  return config.schedulingProfiles.flatMap(({ plugins }, profile) =>
    plugins.flatMap(({ pluginRef }, position) => {
      if (!names.includes(pluginRef)) return [];
      const path = ['schedulingProfiles', profile, 'plugins', position, 'pluginRef'];
      return [document.warning(path, `"${pluginRef}" scores nothing: ${NO_SESSIONS}`)];
    }),
  );
}
