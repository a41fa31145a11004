import { isAlias, isMap, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { child, isSet, items, type Setting, typeOf } from './setting.js';

/** The parts of an Envoy configuration that a picker depends on. */
export interface EnvoyConfiguration {
  readonly listeners: readonly Setting[];
  readonly clusters: readonly Setting[];
  /** Route configurations that listeners name (RDS). */
  readonly routeTables: readonly Setting[];
  /** Line and column of a path, or of the nearest part above it; undefined for a configuration that is no file. */
  readonly placeOf: (path: Setting['path']) => Place | undefined;
}

export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Aliases that a configuration may resolve; YAML can grow without bound through them. */
const ALIASES_MAX = 10_000;

/**
 * Reads the text of a static configuration (YAML or JSON) or of a configuration dump.
 * @throws {Error} one line that names the remedy
 */
export function readEnvoyText(text: string): EnvoyConfiguration {
  const lines = new LineCounter();
  const document = parseDocument(text, { merge: true, lineCounter: lines, uniqueKeys: false });
  const [fault] = document.errors;
  if (fault !== undefined) throw new Error(`not valid YAML or JSON: ${fault.message.split('\n', 1)[0]}`);
  const resolve = (node: unknown) => (isAlias(node) ? node.resolve(document) : node);
  const placeOf = (path: Setting['path']) => {
    const node = nodeAt(document.contents, path, resolve);
    const place = node?.range === undefined || node.range === null ? undefined : lines.linePos(node.range[0]);
    return place === undefined ? undefined : { line: place.line, column: place.col };
  };
  return { ...envoyConfiguration(document.toJS({ maxAliasCount: ALIASES_MAX })), placeOf };
}

/**
 * Takes apart a static configuration or the answer of Envoy's admin page `/config_dump`.
 * @throws {Error} one line that names the remedy
 */
export function envoyConfiguration(value: unknown): EnvoyConfiguration {
  const root: Setting = { path: [], value };
  const resources = child(root, 'static_resources');
  if (isSet(resources)) return { ...staticParts(resources), placeOf: () => undefined };
  if (isSet(child(root, 'configs'))) return { ...dumpParts(root), placeOf: () => undefined };
  throw new Error('neither static_resources nor configs at its top: give an Envoy configuration or a /config_dump');
}

type Parts = Omit<EnvoyConfiguration, 'placeOf'>;

function staticParts(resources: Setting): Parts {
  return {
    listeners: items(child(resources, 'listeners')),
    clusters: items(child(resources, 'clusters')),
    routeTables: [],
  };
}

/** Envoy's own resources and those of a control plane; the bootstrap of a dump repeats its own. */
function dumpParts(root: Setting): Parts {
  const configs = items(child(root, 'configs'));
  const of = (type: string, list: string, ...names: readonly string[]) =>
    configs
      .filter((config) => typeOf(config) === type)
      .flatMap((config) => items(child(config, list)))
      .map((entry) => child(entry, ...names))
      .filter(isSet);
  return {
    listeners: [
      ...of('ListenersConfigDump', 'static_listeners', 'listener'),
      ...of('ListenersConfigDump', 'dynamic_listeners', 'active_state', 'listener'),
    ],
    clusters: [
      ...of('ClustersConfigDump', 'static_clusters', 'cluster'),
      ...of('ClustersConfigDump', 'dynamic_active_clusters', 'cluster'),
    ],
    routeTables: [
      ...of('RoutesConfigDump', 'static_route_configs', 'route_config'),
      ...of('RoutesConfigDump', 'dynamic_route_configs', 'route_config'),
    ],
  };
}

/** The node of a path, or the deepest one on the way to it. */
function nodeAt(from: unknown, path: Setting['path'], resolve: (node: unknown) => unknown): Node | undefined {
  let node = resolve(from);
  for (const step of path) {
    if (!isMap(node) && !isSeq(node)) break;
    const next = resolve(node.get(step, true));
    if (next === undefined || next === null) break;
    node = next;
  }
  return node as Node | undefined;
}
