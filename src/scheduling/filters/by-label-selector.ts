import { definePlugin } from '../plugin.js';
import { labelSelectorFilter } from './label-selector-filter.js';

export const byLabelSelector = definePlugin({
  ...labelSelectorFilter,
  type: 'by-label-selector',
  deprecated: { replacement: labelSelectorFilter.type },
  doc: 'Old name of label-selector-filter.',
});
