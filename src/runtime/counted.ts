/** A number with its noun, in the plural except after 1: `counted(2, 'endpoint')` is `2 endpoints`. */
export function counted(number: number, noun: string, plural = `${noun}s`): string {
  return `${number} ${number === 1 ? noun : plural}`;
}
