import type { SlotAssignment } from '../contract/endpoint.js';
import type { EndpointTable } from '../core/endpoint-table.js';
import type { LabelSpecification } from './program.js';

/** Writes the labels of these endpoints into the columns that programs compare; column = number of the label. */
export function writeLabels(
  table: Pick<EndpointTable, 'setLabelText' | 'setLabelRange'>,
  labels: readonly LabelSpecification[],
  assignments: readonly SlotAssignment[],
): void {
  for (const [column, { read }] of labels.entries()) {
    for (const { slot, endpoint } of assignments) {
      const value = read(endpoint);
      if (value.kind === 'text') table.setLabelText(column, slot, value.text);
      else table.setLabelRange(column, slot, value.range);
    }
  }
}
