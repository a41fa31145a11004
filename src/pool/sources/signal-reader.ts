import type { Endpoint } from '../../contract/endpoint.js';
import type { EndpointSignals } from '../../core/endpoint-table.js';

export interface InformerLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Turns the pages of one kind of source into signals. */
export interface SignalReader<Reading = unknown> {
  /** Returns the reader of an endpoint's pages; called again when its labels change. */
  prepare(endpoint: Endpoint): Reading;
  /**
   * Signals of a complete page, valid during the call; `empty` = it holds nothing of what is wanted.
   * @throws when it cannot be read
   */
  read(reading: Reading, page: Uint8Array): { readonly signals: EndpointSignals; readonly empty: boolean };
  /** Message, logged once, for an endpoint whose page has none of the wanted metrics. */
  nothingFound(reading: Reading): string;
}
