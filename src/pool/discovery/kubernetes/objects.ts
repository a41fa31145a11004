import { isIP } from 'node:net';
import type { LabelSelector } from '../../../contract/label-selector.js';
import type { KeptFields } from '../../../kubernetes/kept-fields.js';
import { POOL_GROUP } from '../../../kubernetes/kinds.js';
import { ObjectProblem } from '../../../kubernetes/object-copy.js';
import type { SelectedLabels } from '../../../kubernetes/reflector.js';

/** Fields of its object that every record has. */
interface ObjectRecord {
  readonly name: string;
  readonly namespace: string;
  /** Wall time of creation, in milliseconds. */
  readonly createdMs: number;
}

/** An InferencePool. */
export interface PoolRecord extends ObjectRecord {
  /** Its own labels, for selectors of objectives. */
  readonly ownLabels: Readonly<Record<string, string>>;
  /** Selects its pods. */
  readonly labels: SelectedLabels;
  /** In the order of the ranks. */
  readonly ports: readonly number[];
  /** Protocol of its servers; undefined where the version has no such field. */
  readonly appProtocol: string | undefined;
  readonly deleting: boolean;
  /** Port of its endpoint picker; undefined = none is named. */
  readonly pickerPort: number | undefined;
}

export interface PodRecord extends ObjectRecord {
  readonly uid: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Undefined = the pod has no address yet. */
  readonly ip: string | undefined;
  readonly ready: boolean;
  /**
   * Wall time since which it has not been ready, in milliseconds; undefined when it is ready or nothing says since
   * when.
   */
  readonly unreadySinceMs: number | undefined;
  readonly deleting: boolean;
  /** Whether its phase is Failed or Succeeded. */
  readonly ended: boolean;
  /** Whether the pod is marked with `pointsman/drain: "true"`. */
  readonly drainMark: boolean;
  /** Ports of the annotation; undefined = all. */
  readonly activePorts: readonly number[] | undefined;
  /** Entries of the annotation that are no ports. */
  readonly wrongPorts: readonly string[];
  readonly containers: readonly ContainerRecord[];
}

export interface ContainerRecord {
  /** Declared ports. */
  readonly ports: readonly number[];
  /** Id of the running container; empty before the first start. */
  readonly id: string;
}

/** Refers to a pool. */
interface PoolPart extends ObjectRecord {
  readonly poolName: string;
  /** Undefined = any group. */
  readonly poolGroup: string | undefined;
}

export interface ObjectiveRecord extends ObjectRecord {
  /** Pools that it belongs to by name; an undefined group = any. */
  readonly pools: readonly Pick<PoolPart, 'poolName' | 'poolGroup'>[];
  /** Labels of further pools; undefined = none. */
  readonly poolSelector: LabelSelector | undefined;
  readonly priority: number;
}

export interface RewriteTarget {
  readonly model: string;
  readonly weight?: number | undefined;
}

export interface RewriteRecord extends PoolPart {
  readonly rules: readonly {
    /** Empty = generic. */
    readonly models: readonly string[];
    readonly targets: readonly RewriteTarget[];
  }[];
}

/** A legacy InferenceModel. */
export interface ModelRecord extends PoolPart {
  readonly modelName: string;
  readonly priority: number;
  readonly targets: readonly RewriteTarget[];
}

const DRAIN_MARK = 'pointsman/drain';
/** The newer key wins, also when it is empty. */
const ACTIVE_PORTS = ['llm-d.ai/active-ports', 'inference.networking.k8s.io/active-ports'] as const;
const INT32_MAX = 2 ** 31 - 1;

type Fields = Readonly<Record<string, unknown>>;

/** A field that is needed is missing or mistyped. */
class Unreadable extends Error {}

function fields(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function required(value: unknown, field: string, remedy: string): string {
  const found = text(value);
  if (found === undefined) throw new Unreadable(`${field}: is missing; ${remedy}`);
  return found;
}

function port(value: unknown, field: string): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535) return value;
  throw new Unreadable(`${field}: ${JSON.stringify(value)} is no port; give a number from 1 to 65535`);
}

/** A reader whose problems are values. */
function reader<Value>(read: (object: Fields) => Value): (object: unknown) => Value | ObjectProblem {
  return (object) => {
    try {
      return read(fields(object));
    } catch (error) {
      if (error instanceof Unreadable) return new ObjectProblem(error.message);
      throw error;
    }
  };
}

function record(object: Fields): ObjectRecord {
  const metadata = fields(object.metadata);
  const createdMs = Date.parse(text(metadata.creationTimestamp) ?? '');
  return {
    name: text(metadata.name) ?? '',
    namespace: text(metadata.namespace) ?? '',
    createdMs: Number.isNaN(createdMs) ? 0 : createdMs,
  };
}

function labelsOf(object: Fields): Record<string, string> {
  const labels = Object.entries(fields(fields(object.metadata).labels));
  return Object.fromEntries(labels.map(([key, value]) => [key, String(value)]));
}

function isDeleting(object: Fields): boolean {
  return fields(object.metadata).deletionTimestamp !== undefined;
}

/** Exact labels; the text is sorted, so that equal selectors are equal texts. */
function exactLabels(given: unknown, field: string): SelectedLabels {
  const entries = Object.entries(fields(given)).map(([key, value]) => [key, String(value)] as const);
  if (entries.length === 0) throw new Unreadable(`${field}: is empty; name at least one label of the model servers`);
  return {
    selector: entries
      .map(([key, value]) => `${key}=${value}`)
      .sort()
      .join(','),
    accepts: (labels) => entries.every(([key, value]) => labels[key] === value),
  };
}

/** InferencePool of inference.networking.k8s.io/v1. */
export const readPool = reader((object): PoolRecord => {
  const spec = fields(object.spec);
  const given = list(spec.targetPorts);
  const ports = given.map((one, i) => port(fields(one).number, `spec.targetPorts[${i}].number`));
  if (ports.length === 0) throw new Unreadable('spec.targetPorts: is empty; name the ports of the model servers');
  if (new Set(ports).size < ports.length) throw new Unreadable('spec.targetPorts: a port stands twice; remove one');
  const pickerPort = fields(fields(spec.endpointPickerRef).port).number;
  return {
    ...record(object),
    ownLabels: labelsOf(object),
    labels: exactLabels(fields(spec.selector).matchLabels, 'spec.selector.matchLabels'),
    ports,
    appProtocol: text(spec.appProtocol),
    deleting: isDeleting(object),
    pickerPort: typeof pickerPort === 'number' ? pickerPort : undefined,
  };
});

/** InferencePool of inference.networking.x-k8s.io/v1alpha2: a flat selector and one port. */
export const readLegacyPool = reader((object): PoolRecord => {
  const spec = fields(object.spec);
  const pickerPort = fields(spec.extensionRef).portNumber;
  return {
    ...record(object),
    ownLabels: labelsOf(object),
    labels: exactLabels(spec.selector, 'spec.selector'),
    ports: [port(spec.targetPortNumber, 'spec.targetPortNumber')],
    appProtocol: undefined,
    deleting: isDeleting(object),
    pickerPort: typeof pickerPort === 'number' ? pickerPort : undefined,
  };
});

/** Characters of a wrong address that are shown. */
const ADDRESS_SHOWN = 60;

/** Fields that `readPod` needs. */
export const POD_FIELDS: KeptFields = {
  metadata: {
    ...{ name: true, namespace: true, uid: true, labels: true, creationTimestamp: true, deletionTimestamp: true },
    annotations: Object.fromEntries([DRAIN_MARK, ...ACTIVE_PORTS].map((key) => [key, true])),
  },
  spec: { nodeName: true, containers: { name: true, ports: { containerPort: true } } },
  status: {
    ...{ phase: true, podIP: true, hostIP: true },
    conditions: { type: true, status: true, lastTransitionTime: true },
    containerStatuses: { name: true, containerID: true },
  },
};

/** Reads no more than the projection needs, so that 10,000 pods stay small. Its only problem is an invalid address. */
export function readPod(object: unknown): PodRecord | ObjectProblem {
  const pod = fields(object);
  const metadata = fields(pod.metadata);
  const status = fields(pod.status);
  const annotations = fields(metadata.annotations);
  const condition = fields(list(status.conditions).find((one) => fields(one).type === 'Ready'));
  const ready = condition.status === 'True';
  const since = Date.parse(text(condition.lastTransitionTime) ?? '');
  const ip = text(status.podIP) || undefined;
  if (ip !== undefined && isIP(ip) === 0) {
    return new ObjectProblem(`status.podIP: expected an IP address, got ${JSON.stringify(ip.slice(0, ADDRESS_SHOWN))}`);
  }
  return {
    ...record(pod),
    uid: text(metadata.uid) ?? '',
    labels: withNode(fields(metadata.labels) as Record<string, string>, fields(pod.spec), status),
    ip,
    ready,
    unreadySinceMs: ready || Number.isNaN(since) ? undefined : since,
    deleting: isDeleting(pod),
    ended: status.phase === 'Failed' || status.phase === 'Succeeded',
    drainMark: annotations[DRAIN_MARK] === 'true',
    ...activePorts(annotations),
    containers: containers(fields(pod.spec), status),
  };
}

/** Node of the pod as labels, for plugins that ask the node; labels of the pod's own go before. */
function withNode(labels: Readonly<Record<string, string>>, spec: Fields, status: Fields): Record<string, string> {
  const node: Record<string, string> = {};
  const [address, name] = [text(status.hostIP), text(spec.nodeName)];
  if (address !== undefined) node.nodeAddress = address;
  if (name !== undefined) node['kubernetes.io/hostname'] = name;
  return { ...node, ...labels };
}

function activePorts(annotations: Fields): Pick<PodRecord, 'activePorts' | 'wrongPorts'> {
  const key = ACTIVE_PORTS.find((one) => typeof annotations[one] === 'string');
  if (key === undefined) return { activePorts: undefined, wrongPorts: [] };
  const entries = String(annotations[key])
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  const isPort = (entry: string) => /^[0-9]{1,5}$/.test(entry) && Number(entry) >= 1 && Number(entry) <= 65_535;
  return { activePorts: entries.filter(isPort).map(Number), wrongPorts: entries.filter((entry) => !isPort(entry)) };
}

/** Containers that run beside each other; an init container that restarts always is a sidecar, not a server. */
function containers(spec: Fields, status: Fields): ContainerRecord[] {
  const statuses = list(status.containerStatuses).map(fields);
  return list(spec.containers).map((one) => {
    const { name, ports } = fields(one);
    const id = text(statuses.find((candidate) => candidate.name === name)?.containerID) ?? '';
    const declared = list(ports).map((entry) => fields(entry).containerPort);
    return { ports: declared.filter((entry): entry is number => typeof entry === 'number'), id };
  });
}

function poolReference(spec: Fields): Pick<PoolPart, 'poolName' | 'poolGroup'> {
  const reference = fields(spec.poolRef);
  const remedy = 'name the InferencePool that the object belongs to';
  return {
    poolName: required(reference.name, 'spec.poolRef.name', remedy),
    poolGroup: text(reference.group) ?? POOL_GROUP,
  };
}

/** InferenceObjective of both groups. */
export const readObjective = reader((object): ObjectiveRecord => {
  const spec = fields(object.spec);
  const priority = spec.priority ?? 0;
  if (typeof priority !== 'number' || !Number.isInteger(priority) || Math.abs(priority) > INT32_MAX)
    throw new Unreadable(
      `spec.priority: ${JSON.stringify(priority)} is no whole number of 32 bits; give one or leave it out`,
    );
  return { ...record(object), ...poolsOf(spec), priority };
});

/** Bound on `poolRefs`, of the API. */
const POOL_REFERENCES_MAX = 16;

/** The pools of an objective: `poolRefs` and `poolSelector`, or the one of `poolRef`. */
function poolsOf(spec: Fields): Pick<ObjectiveRecord, 'pools' | 'poolSelector'> {
  const references = list(spec.poolRefs);
  if (references.length > POOL_REFERENCES_MAX)
    throw new Unreadable(`spec.poolRefs: has ${references.length} entries; name at most ${POOL_REFERENCES_MAX} pools`);
  const named = references.map((reference, i) => ({
    poolName: required(fields(reference).name, `spec.poolRefs[${i}].name`, 'name an InferencePool'),
    poolGroup: text(fields(reference).group) ?? POOL_GROUP,
  }));
  const poolSelector = spec.poolSelector === undefined ? undefined : labelSelector(fields(spec.poolSelector));
  if (spec.poolRef === undefined && (named.length > 0 || poolSelector !== undefined)) {
    return { pools: named, poolSelector };
  }
  return { pools: [poolReference(spec), ...named], poolSelector };
}

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const;

function labelSelector(given: Fields): LabelSelector {
  const matchExpressions = list(given.matchExpressions).map((one, i) => {
    const { key, operator, values } = fields(one);
    const field = `spec.poolSelector.matchExpressions[${i}]`;
    const known = OPERATORS.find((each) => each === operator);
    if (known === undefined)
      throw new Unreadable(`${field}.operator: ${JSON.stringify(operator)} is unknown; use ${OPERATORS.join(', ')}`);
    return {
      key: required(key, `${field}.key`, 'name the label'),
      operator: known,
      values: list(values).map(String),
    };
  });
  const matchLabels = Object.fromEntries(
    Object.entries(fields(given.matchLabels)).map(([key, value]) => [key, String(value)]),
  );
  return { matchLabels, matchExpressions };
}

/** InferenceModelRewrite of both groups. */
export const readRewrite = reader((object): RewriteRecord => {
  const spec = fields(object.spec);
  const rules = list(spec.rules).flatMap((rule, i) => {
    const matches = list(fields(rule).matches);
    const models = matches.flatMap((match, m) => matchedModel(match, `spec.rules[${i}].matches[${m}].model`));
    // A rule whose matches name no model never matches; only one without matches is generic.
    if (matches.length > 0 && models.length === 0) return [];
    return [{ models, targets: rewriteTargets(fields(rule).targets, 'modelRewrite', `spec.rules[${i}].targets`) }];
  });
  return { ...record(object), ...poolReference(spec), rules };
});

function matchedModel(match: unknown, field: string): string[] {
  const model = fields(fields(match).model);
  if (model.value === undefined) return [];
  if ((text(model.type) ?? 'Exact') !== 'Exact')
    throw new Unreadable(`${field}.type: ${JSON.stringify(model.type)} is unknown; use Exact`);
  return [required(model.value, `${field}.value`, 'name the model')];
}

function rewriteTargets(given: unknown, nameField: string, field: string): RewriteTarget[] {
  const targets = list(given).map((one, i) => {
    const { [nameField]: name, weight } = fields(one);
    if (weight !== undefined && (typeof weight !== 'number' || !(weight >= 0)))
      throw new Unreadable(`${field}[${i}].weight: ${JSON.stringify(weight)} is no weight; give a number from 0`);
    const model = required(name, `${field}[${i}].${nameField}`, 'name the model that is asked for instead');
    return weight === undefined ? { model } : { model, weight: weight as number };
  });
  if (targets.length === 0 && nameField === 'modelRewrite')
    throw new Unreadable(`${field}: is empty; name at least one target`);
  return targets;
}

const PRIORITY_OF_CRITICALITY: Readonly<Record<string, number>> = { Critical: 1, Standard: 0, Sheddable: -1 };

/** InferenceModel of GIE up to 0.5. Its `poolRef` is read by name alone, since it had one group only. */
export const readModel = reader((object): ModelRecord => {
  const spec = fields(object.spec);
  const criticality = text(spec.criticality) ?? 'Standard';
  const priority = PRIORITY_OF_CRITICALITY[criticality];
  if (priority === undefined)
    throw new Unreadable(`spec.criticality: "${criticality}" is unknown; use Critical, Standard or Sheddable`);
  return {
    ...record(object),
    poolName: required(fields(spec.poolRef).name, 'spec.poolRef.name', 'name the InferencePool of the model'),
    poolGroup: undefined,
    modelName: required(spec.modelName, 'spec.modelName', 'give the name that requests ask for'),
    priority,
    targets: rewriteTargets(spec.targetModels, 'name', 'spec.targetModels'),
  };
});
