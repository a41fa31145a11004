import { refuseUnsimulatedFlow } from './flow.js';
import type { PickerConfiguration } from './picker-configuration.js';

/**
 * Refuses settings that the simulation ignores.
 * @param blockTokens tokens of the workload's blocks
 * @param events the engines tell KV events
 * @throws Error one line that names the setting
 */
export function refuseUnsimulated(
  { scheduling, flowControl }: PickerConfiguration,
  blockTokens: number,
  events: boolean,
): void {
  const { profiles, host, attributes } = scheduling;
  if (flowControl !== undefined) refuseUnsimulatedFlow(flowControl);
  if (profiles.length !== 1) {
    throw new Error(`the configuration has ${profiles.length} profiles: the fleet simulation runs exactly one`);
  }
  const hosted = host.find(({ filterColumn, scoreColumn }) => filterColumn !== undefined || scoreColumn !== undefined);
  if (hosted !== undefined) {
    throw new Error(
      `the configuration uses "${hosted.name}", which runs on the picker's threads: it cannot be simulated`,
    );
  }
  if (attributes.length > 0) {
    throw new Error(
      `the configuration reads the attribute "${attributes[0]}" of endpoints, which simulated engines do not have`,
    );
  }
  checkBlocks(scheduling.prefix?.blockTokens ?? blockTokens, blockTokens, events);
}

function checkBlocks(own: number, workload: number, events: boolean): void {
  if (own % workload !== 0) {
    throw new Error(
      `the picker's blocks of ${own} tokens are no multiple of the workload's of ${workload}: change blockTokens`,
    );
  }
  if (events && own !== workload) {
    throw new Error(`KV events need equal blocks: the picker has ${own} tokens in one, the engines ${workload}`);
  }
}
