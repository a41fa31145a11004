import type { EndpointSignals } from '../../core/endpoint-table.js';
import type { Endpoint } from '../endpoint.js';

export interface InformerLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Turns the pages of one kind of source into signals. */
export interface SignalReader<Reading = unknown> {
  /** How the pages of this endpoint are to be read; asked again when its labels change. */
  prepare(endpoint: Endpoint): Reading;
  /** Signals of a complete page, valid during the call; `empty` = it holds nothing of what is wanted. @throws when it cannot be read */
  read(reading: Reading, page: Uint8Array): { readonly signals: EndpointSignals; readonly empty: boolean };
  /** What to say, once, of an endpoint whose page holds nothing of what is wanted. */
  nothingFound(reading: Reading): string;
}
