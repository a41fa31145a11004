import type { LoadedConfiguration } from '../../src/config/load.js';
import { proxyNeeds, readsAnswerBodies } from '../../src/config/proxy-needs.js';
import { NEEDS_UNKNOWN, type PickerNeeds } from './finding.js';

/** Needs of a picker with this configuration; undefined = it is not known. */
export function needsOf(configuration: LoadedConfiguration | undefined): PickerNeeds {
  if (configuration === undefined) return NEEDS_UNKNOWN;
  const needs = proxyNeeds(configuration);
  const { flowControl } = configuration;
  return {
    queueWaitMs: flowControl === undefined ? 0 : longestWaitMs(flowControl),
    requestBody: needs.prompt.length > 0,
    answerBody: readsAnswerBodies(needs),
    destinations: destinationsOf(configuration),
  };
}

/** Longest wait of any band, with and without endpoints. Milliseconds; Infinity = no end. */
function longestWaitMs(flowControl: NonNullable<LoadedConfiguration['flowControl']>): number {
  const { ttlMs, noEndpointTtlMs, bands, template, negativeTemplate } = flowControl;
  const ofBands = [...bands, template, negativeTemplate].map((band) => band?.ttlMs ?? ttlMs);
  return Math.max(ttlMs, noEndpointTtlMs, ...ofBands);
}

/** Most destinations that a profile picks. */
export function destinationsOf({ scheduling }: LoadedConfiguration): number {
  const operations = scheduling.profiles.flatMap((profile) => profile.operations);
  const picks = operations
    .filter(({ code }) => code.startsWith('OP_PICK_'))
    .map(({ parameters }) => parameters[0] ?? 1);
  return Math.max(1, ...picks);
}
