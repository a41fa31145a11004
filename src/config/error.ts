/** Position in a configuration. Lines and columns count from 1. */
export interface Place {
  /** File name, or the flag that the text came from. */
  readonly source: string;
  readonly line: number;
  readonly column: number;
}

/** A configuration that cannot be used. The message is one line: place, field, fault and remedy. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly place: Place | undefined;
  /** Path of the field, such as `plugins[0].parameters.threshold`; empty when the document as a whole is meant. */
  readonly field: string;

  constructor(message: string, place?: Place, field = '') {
    const where = place === undefined ? '' : `${place.source}:${place.line}:${place.column}: `;
    super(`${where}${field === '' ? '' : `${field}: `}${message}`.replaceAll(/\s*\n\s*/g, ' '));
    this.place = place;
    this.field = field;
  }
}
