import type { Endpoint } from '../../src/contract/endpoint.js';
import type { EndpointTable } from '../../src/core/endpoint-table.js';
import { CoefficientTable } from '../../src/core/latency-predictions.js';
import type { CoreInstance } from '../../src/core/memory.js';
import { latencyPriors, priorCoefficients } from '../../src/prediction/latency-priors.js';
import type { EndpointDirectory } from '../../src/scheduling/endpoint-directory.js';
import { writeLabels } from '../../src/scheduling/label-columns.js';
import type { CompiledScheduling } from '../../src/scheduling/program.js';
import type { EndpointState } from './signals-file.js';

/** Memory of a pool that no shard serves: of one explanation, or of one benchmark. */
export interface OfflinePool {
  /** Instance of the thread that writes endpoints. */
  readonly control: CoreInstance;
  readonly table: EndpointTable;
  readonly directory: EndpointDirectory;
  readonly scheduling: CompiledScheduling;
}

/**
 * Opens the endpoints in the slots of their positions, all live, with signals of the moment `nowMs`, and the masks and
 * label columns that the programs read.
 * @param states one for each endpoint, in their order
 */
export function openOfflineEndpoints(
  { control, table, directory, scheduling }: OfflinePool,
  endpoints: readonly Endpoint[],
  states: readonly EndpointState[],
  nowMs: number,
): void {
  const { prefix, masks, labels, attributes, prediction } = scheduling;
  // Nothing has been learned here: latency is predicted as for the first request of a picker.
  if (prediction !== undefined) {
    new CoefficientTable(control).setUnknown(priorCoefficients(latencyPriors(prediction.prior)));
  }
  const assignments = endpoints.map((endpoint, slot) => ({ slot, generation: 1, endpoint }));
  directory.apply(assignments, []);
  for (const [slot, state] of states.entries()) {
    table.open(slot, 1);
    if (prefix !== undefined) table.setCapacity(slot, prefix.capacityBlocks);
    table.setState(slot, 'live');
    table.publish(
      slot,
      {
        waiting: state.waitingRequests,
        running: state.runningRequests,
        kvUsage: state.kvUsage,
        adapters: state.loraAdapters,
        attributes: attributes.map((attribute) => state.attributes[attribute]),
      },
      nowMs,
    );
  }
  writeLabels(table, labels, assignments);
  for (const [mask, { accepts }] of masks.entries()) {
    const slots = [...endpoints.keys()].filter((slot) => accepts(endpoints[slot]!.labels));
    table.setMask(mask, slots);
  }
}
