import { metadataField, numberValue, stringValue, structEntry, structValue } from './dynamic-metadata.js';
import { setHeader } from './process-response.js';

const DESTINATION = 'x-gateway-destination-endpoint';
const SCORES = 'x-gateway-destination-endpoint-scores';

/** The two places that name the destination, encoded from one value so that they cannot differ. */
export interface Destination {
  /** A `set_headers` entry. */
  readonly header: Buffer;
  /** The `dynamic_metadata` field of the reply. */
  readonly metadata: Buffer;
}

function destinationMetadata(destination: string, scores: ReadonlyMap<string, number> | undefined): Buffer {
  const entries = [structEntry(DESTINATION, stringValue(destination))];
  if (scores !== undefined) {
    const values = [...scores].map(([address, score]) => structEntry(address, numberValue(score)));
    entries.push(structEntry(SCORES, structValue(values)));
  }
  return metadataField([structEntry('envoy.lb', structValue(entries))]);
}

/** Encoded destinations by their text, so that a request to a known endpoint copies bytes and encodes nothing. */
export class DestinationTemplates {
  readonly #templates = new Map<string, Destination>();
  readonly #capacity: number;

  /** @param capacity how many destinations are kept; the one that was added first leaves first */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#templates.size;
  }

  /**
   * @param destination one address, or several in order of preference joined by commas
   * @param scores weighted score by address, when scores are emitted: such a reply is encoded for this request only
   */
  encode(destination: string, scores: ReadonlyMap<string, number> | undefined): Destination {
    const known = this.#templates.get(destination) ?? this.#add(destination);
    return scores === undefined ? known : { header: known.header, metadata: destinationMetadata(destination, scores) };
  }

  #add(destination: string): Destination {
    if (this.#templates.size >= this.#capacity) {
      const oldest = this.#templates.keys().next();
      if (!oldest.done) this.#templates.delete(oldest.value);
    }
    const template = {
      header: setHeader(DESTINATION, destination),
      metadata: destinationMetadata(destination, undefined),
    };
    this.#templates.set(destination, template);
    return template;
  }
}
