/** Does nothing with the items: the trip is what is measured. */
export function count(items) {
  return items.length;
}
