import { metadataField, numberValue, stringValue, structEntry, structValue } from './dynamic-metadata.js';
import { encodeRequestHeadersReply, replaceContentLength, setContentLength, setHeader } from './process-response.js';

const DESTINATION = 'x-gateway-destination-endpoint';
const SCORES = 'x-gateway-destination-endpoint-scores';

/** The two places that name the destination, encoded from one value so that they cannot differ. */
export interface Destination {
  /** A `set_headers` entry. */
  readonly header: Buffer;
  /** The `dynamic_metadata` field of the reply. */
  readonly metadata: Buffer;
}

/** A destination with its replies to otherwise unchanged requests, by the digits of the announced length. */
interface KnownDestination extends Destination {
  readonly plainReplies: (Buffer | undefined)[];
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
  readonly #templates = new Map<string, KnownDestination>();
  readonly #capacity: number;

  /** @param capacity bound on the kept destinations; the oldest leaves first */
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
    const known = this.#known(destination);
    return scores === undefined ? known : { header: known.header, metadata: destinationMetadata(destination, scores) };
  }

  /**
   * The whole header reply when it names the destination and a length only.
   * @param contentLength above 0
   * @returns overwritten by a later call: it is to be sent at once
   */
  plainReply(destination: string, contentLength: number): Buffer {
    const { header, metadata, plainReplies } = this.#known(destination);
    const digits = digitsOf(contentLength);
    const known = plainReplies[digits];
    if (known !== undefined) {
      replaceContentLength(known, contentLength, metadata.length);
      return known;
    }
    const reply = encodeRequestHeadersReply([header, setContentLength(contentLength)], metadata);
    plainReplies[digits] = reply;
    return reply;
  }

  #known(destination: string): KnownDestination {
    return this.#templates.get(destination) ?? this.#add(destination);
  }

  #add(destination: string): KnownDestination {
    if (this.#templates.size >= this.#capacity) {
      const oldest = this.#templates.keys().next();
      if (!oldest.done) this.#templates.delete(oldest.value);
    }
    const template = {
      header: setHeader(DESTINATION, destination),
      metadata: destinationMetadata(destination, undefined),
      plainReplies: [],
    };
    this.#templates.set(destination, template);
    return template;
  }
}

/** Digits of a whole number above 0. */
function digitsOf(value: number): number {
  let digits = 1;
  for (let bound = 10; value >= bound; bound *= 10) digits++;
  return digits;
}
