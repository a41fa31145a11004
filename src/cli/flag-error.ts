/** A command line that cannot be used. The message is one line that names the flag and the remedy. */
export class FlagError extends Error {
  override readonly name = 'FlagError';
}
