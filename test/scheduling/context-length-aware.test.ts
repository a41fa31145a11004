import { expect, it } from 'vitest';
import { contextLengthAware } from '../../dist/src/scheduling/context-length-aware.js';
import type { LabelValue } from '../../dist/src/scheduling/program.js';

/** What the column of the plugin says of an endpoint with a label. */
function rangeOf(label: string | undefined): LabelValue {
  let read: ((endpoint: { labels: Record<string, string> }) => LabelValue) | undefined;
  const context = {
    kind: 'scorer',
    name: 'lengths',
    label: (_what: string, value: typeof read) => {
      read = value;
      return 0;
    },
  };
  contextLengthAware.compile!({ label: 'lengths', enableFiltering: false } as never, 1, context as never);
  return read!({ labels: label === undefined ? {} : { lengths: label } });
}

it.each([
  [undefined, undefined],
  ['0-8000', { min: 0, max: 8000 }],
  [' 5 - 5 ', { min: 5, max: 5 }],
  ['6-5', 'bad'],
  ['', 'bad'],
  ['many', 'bad'],
  ['1-2-3', 'bad'],
])('the range of prompt lengths of an endpoint with the label %j is %j', (label, range) => {
  expect(rangeOf(label)).toEqual({ kind: 'range', range });
});
