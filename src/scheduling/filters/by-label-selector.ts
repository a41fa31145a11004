import { underOldName } from '../old-name.js';
import { labelSelectorFilter } from './label-selector-filter.js';

export const byLabelSelector = underOldName(labelSelectorFilter, 'by-label-selector');
