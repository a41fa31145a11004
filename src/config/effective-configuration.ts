import type { AdaptationConfig } from './adaptation.js';
import { API_VERSION } from './api-versions.js';
import type { DataLayer } from './data-layer.js';
import type { ResolvedFlowControl } from './flow-control.js';
import type { LoadedPlugin, PluginSet } from './plugin-set.js';
import type { ResolvedProfile } from './profiles.js';
import type { ReplicationConfig } from './replication.js';
import type { EndpointPickerConfig } from './schema.js';

interface PluginReference {
  readonly pluginRef: string;
}

export interface EffectivePlugin {
  readonly type: string;
  readonly name: string;
  /** With their defaults, as the schema of the type says. */
  readonly parameters: unknown;
}

export interface EffectiveProfile {
  readonly name: string;
  /** Scorers have a weight. */
  readonly plugins: readonly (PluginReference & { readonly weight?: number })[];
}

/** A configuration with all defaults, as a document of the newest version that loads to the same result. */
export interface EffectiveConfiguration {
  readonly apiVersion: string;
  readonly kind: 'EndpointPickerConfig';
  /** `name=true` or `name=false` for each. */
  readonly featureGates: readonly string[];
  /** Default plugins included. */
  readonly plugins: readonly EffectivePlugin[];
  readonly schedulingProfiles: readonly EffectiveProfile[];
  readonly dataLayer: {
    readonly injectDefaults: boolean;
    readonly sources: readonly (PluginReference & { readonly extractors: readonly PluginReference[] })[];
    readonly discovery?: NonNullable<EndpointPickerConfig['dataLayer']>['discovery'];
  };
  readonly flowControl: ResolvedFlowControl['effective'] & { readonly saturationDetector: PluginReference };
  readonly requestHandler: { readonly parsers: readonly PluginReference[] };
  readonly adaptation: AdaptationConfig;
  readonly replication?: ReplicationConfig;
}

/** The parts of a configuration with their defaults. */
export interface ResolvedParts {
  readonly gates: ReadonlyMap<string, boolean>;
  readonly plugins: PluginSet;
  readonly profiles: readonly ResolvedProfile[];
  readonly parsers: readonly LoadedPlugin[];
  readonly dataLayer: DataLayer;
  readonly flowControl: ResolvedFlowControl | undefined;
  readonly detector: LoadedPlugin;
  readonly adaptation: AdaptationConfig;
  readonly replication: ReplicationConfig | undefined;
}

/** @param config as it was given */
export function effectiveConfiguration(config: EndpointPickerConfig, resolved: ResolvedParts): EffectiveConfiguration {
  const { gates, plugins, profiles, parsers, dataLayer, flowControl, detector, adaptation, replication } = resolved;
  const discovery = config.dataLayer?.discovery;
  return {
    apiVersion: API_VERSION,
    kind: 'EndpointPickerConfig',
    featureGates: [...gates].map(([name, on]) => `${name}=${on}`),
    plugins: plugins.list().map(({ name, definition, parameters }) => ({ type: definition.type, name, parameters })),
    schedulingProfiles: profiles.map(effectiveProfile),
    dataLayer: {
      injectDefaults: config.dataLayer?.injectDefaults ?? true,
      sources: dataLayer.sources.map(({ source, extractors }) => ({
        ...reference(source),
        extractors: extractors.map(reference),
      })),
      ...(discovery === undefined ? {} : { discovery }),
    },
    flowControl: { ...flowControl?.effective, saturationDetector: reference(detector) },
    requestHandler: { parsers: parsers.map(reference) },
    adaptation,
    ...(replication === undefined ? {} : { replication }),
  };
}

function effectiveProfile({ name, plugins }: ResolvedProfile): EffectiveProfile {
  return {
    name,
    plugins: plugins.map((plugin) => ({
      ...reference(plugin),
      ...(plugin.definition.kinds.includes('scorer') ? { weight: plugin.weight } : {}),
    })),
  };
}

function reference({ name }: { readonly name: string }): PluginReference {
  return { pluginRef: name };
}
