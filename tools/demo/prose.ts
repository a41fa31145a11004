/** Text of the given size in bytes that says its own name over and over. */
export function prose(name: string, bytes: number): string {
  return `This is the ${name}. `.repeat(Math.ceil(bytes / (name.length + 14))).slice(0, bytes);
}
