import { didYouMean } from '../runtime/nearest-name.js';
import type { ConfigurationDocument, Path } from './document.js';
import { pathText } from './document.js';
import { type EndpointPickerConfig, endpointPickerConfig } from './schema.js';
import { shown, validate, violations } from './validation.js';

/** Version of the internal form; what the others call otherwise is converted to it. */
export const API_VERSION = 'llm-d.ai/v1';
const OLDER_VERSION = 'llm-d.ai/v1alpha1';
const DEPRECATED_VERSION = 'inference.networking.x-k8s.io/v1alpha1';
const KIND = 'EndpointPickerConfig';

/** A field that has another place in `llm-d.ai/v1` than in earlier versions. */
export interface MovedField {
  readonly from: Path;
  readonly to: Path;
  /** Whether the older place was deprecated before the newer version came. */
  readonly deprecated?: boolean;
}

export const MOVED_FIELDS: readonly MovedField[] = [
  { from: ['dataLayer', 'discovery', 'pluginRef'], to: ['dataLayer', 'discovery', 'endpoints', 'pluginRef'] },
  { from: ['dataLayer', 'peerDiscovery'], to: ['dataLayer', 'discovery', 'peers'] },
  { from: ['dataLayer', 'crossReplicaSyncerPluginRef'], to: ['dataLayer', 'crossReplica', 'syncerPluginRef'] },
  { from: ['dataLayer', 'crossReplicaSyncInterval'], to: ['dataLayer', 'crossReplica', 'syncInterval'] },
  { from: ['dataLayer', 'crossReplicaPublishTimeout'], to: ['dataLayer', 'crossReplica', 'publishTimeout'] },
  { from: ['saturationDetector'], to: ['flowControl', 'saturationDetector'], deprecated: true },
  { from: ['parser'], to: ['requestHandler', 'parsers', 0], deprecated: true },
];

/** A configuration in its internal form. */
export interface VersionedConfig {
  readonly config: EndpointPickerConfig;
  /** Deprecated names and missing fields; one line each, with its place. */
  readonly warnings: readonly string[];
  /** What was converted, in one line; empty = the document has the internal form. */
  readonly notes: readonly string[];
}

/**
 * The configuration of a document of any version, in the form of `llm-d.ai/v1`. From then on the document knows the
 * places of moved fields: an error about one names the field that was written.
 * @throws ConfigurationError at the first problem
 */
export function readVersioned(document: ConfigurationDocument): VersionedConfig {
  const { data, warnings, notes } = converted(document);
  return { config: validate(endpointPickerConfig, data, document), warnings, notes };
}

/** Finds all errors of shape that `readVersioned` would throw one by one, as violations of the schema. */
export function shapeViolations(document: ConfigurationDocument) {
  return violations(endpointPickerConfig, converted(document).data, document);
}

interface Converted {
  readonly data: unknown;
  readonly warnings: readonly string[];
  readonly notes: readonly string[];
}

function converted(document: ConfigurationDocument): Converted {
  if (!isFields(document.data)) return { data: document.data, warnings: [], notes: [] };
  const { apiVersion } = document.data;
  const warnings = versionWarnings(document.data, document);
  if (apiVersion === API_VERSION) {
    refuseOlderFields(document.data, document);
    return { data: document.data, warnings, notes: [] };
  }
  const data = structuredClone(document.data);
  const moved: string[] = [];
  for (const field of MOVED_FIELDS) {
    const value = takeAt(data, field.from);
    if (value === undefined) continue;
    const isTaken = valueAt(data, field.to) !== undefined;
    if (field.deprecated === true) {
      const ignored = isTaken ? ', and ignored because that is set' : '';
      warnings.push(document.warning(field.from, `is deprecated: use ${listText(field.to)}${ignored}`));
    } else if (isTaken) {
      warnings.push(document.warning(field.from, `is ignored, because ${pathText(field.to)} is set`));
    } else {
      moved.push(`${pathText(field.from)} is ${pathText(field.to)}`);
    }
    if (isTaken) continue;
    putAt(data, field.to, value);
    document.moved(field.from, field.to);
  }
  return { data, warnings, notes: (apiVersion ?? '') === '' ? [] : [note(String(apiVersion), moved, document)] };
}

function note(version: string, moved: readonly string[], document: ConfigurationDocument): string {
  const fields = moved.length === 0 ? '' : `: ${moved.join(', ')}`;
  return document.warning(['apiVersion'], `${version} is read as ${API_VERSION}${fields}`);
}

/** Warnings about `apiVersion` and `kind`. Throws when one is another field's. */
function versionWarnings(data: Fields, document: ConfigurationDocument): string[] {
  const warnings: string[] = [];
  const { apiVersion, kind } = data;
  for (const [field, value, assumed] of [
    ['apiVersion', apiVersion, OLDER_VERSION],
    ['kind', kind, KIND],
  ] as const) {
    if (value === undefined) warnings.push(document.warning([field], `is missing: ${assumed} is assumed`));
    if (value === '') warnings.push(document.warning([field], `is empty: ${assumed} is assumed`));
  }
  if (typeof apiVersion === 'string' && !['', API_VERSION, OLDER_VERSION, DEPRECATED_VERSION].includes(apiVersion)) {
    const hint = didYouMean(apiVersion, [API_VERSION, OLDER_VERSION]);
    throw document.error(
      ['apiVersion'],
      `expected ${API_VERSION} or ${OLDER_VERSION}, got ${shown(apiVersion)}${hint}`,
    );
  }
  if (apiVersion === DEPRECATED_VERSION) {
    warnings.push(document.warning(['apiVersion'], `${DEPRECATED_VERSION} is deprecated: use ${API_VERSION}`));
  }
  if (typeof kind === 'string' && kind !== '' && kind !== KIND) {
    throw document.error(['kind'], `expected ${KIND}, got ${shown(kind)}`);
  }
  return warnings;
}

function refuseOlderFields(data: Fields, document: ConfigurationDocument): void {
  for (const { from, to } of MOVED_FIELDS) {
    if (valueAt(data, from) === undefined) continue;
    throw document.error(from, `${API_VERSION} does not have this field: use ${listText(to)}`, 'key');
  }
}

/** A path as a hint names it: without the position in a list. */
function listText(path: Path): string {
  return pathText(path.filter((part) => typeof part === 'string'));
}

type Fields = Record<string | number, unknown>;

function isFields(value: unknown): value is Fields {
  return value !== null && typeof value === 'object';
}

function valueAt(data: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, part) => (isFields(value) ? value[part] : undefined), data);
}

/** Removes the value at `path`, and returns it. */
function takeAt(data: Fields, path: Path): unknown {
  const owner = valueAt(data, path.slice(0, -1));
  if (!isFields(owner)) return undefined;
  const key = path.at(-1)!;
  const value = owner[key];
  delete owner[key];
  return value;
}

/** Puts a value at `path`, with the mappings and lists around it. What is no mapping there is left to the schema. */
function putAt(data: Fields, path: Path, value: unknown): void {
  let owner = data;
  for (const [depth, part] of path.slice(0, -1).entries()) {
    owner[part] ??= typeof path[depth + 1] === 'number' ? [] : {};
    const next = owner[part];
    if (!isFields(next)) return;
    owner = next;
  }
  owner[path.at(-1)!] = value;
}
