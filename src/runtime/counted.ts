/** A number with its noun, in the plural except after 1: `counted(2, 'endpoint')` is `2 endpoints`. */
export function counted(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
