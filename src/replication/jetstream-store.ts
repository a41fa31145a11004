import type * as Kv from '@nats-io/kv';
import type { KV } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { optionalPackage } from '../runtime/optional-package.js';
import type { KeptName, KeptStore } from './kept-store.js';

/** The client of JetStream's key-value store; this module is loaded only where `replication.jetStream` is on. */
const kv = optionalPackage<typeof Kv>('@nats-io/kv', 'replicas that keep their state in JetStream');

/** Bucket of all groups; the group is a part of the key. */
const BUCKET = 'pointsman';
/** Bound on the wait for an answer of JetStream. */
const ANSWER_MS_MAX = 2_000;
/** Bound on a value in bytes: half of what NATS takes by default. */
const VALUE_BYTES_MAX = 512 * 1_024;

/**
 * Values of one group in a key-value bucket of JetStream. Of each key the last value is kept, in files of the server.
 */
export class JetStreamStore implements KeptStore {
  readonly #connection: () => NatsConnection | undefined;
  readonly #group: string;
  #bucket: Promise<KV> | undefined;

  /** @param connection the present connection; undefined = there is none */
  constructor(connection: () => NatsConnection | undefined, group: string) {
    this.#connection = connection;
    this.#group = group;
  }

  async get(name: KeptName): Promise<Uint8Array | undefined> {
    const entry = await (await this.#open()).get(this.#key(name));
    return entry === null || entry.operation !== 'PUT' ? undefined : entry.value;
  }

  async put(name: KeptName, value: Uint8Array): Promise<void> {
    if (value.length > VALUE_BYTES_MAX) throw new RangeError(`${name}: ${value.length} bytes are more than is kept`);
    await (await this.#open()).put(this.#key(name), value, { timeout: ANSWER_MS_MAX });
  }

  /** Opens the bucket, and creates it for the first time. A failure is not kept: the next call tries again. */
  async #open(): Promise<KV> {
    const connection = this.#connection();
    if (connection === undefined) throw new Error('there is no connection to NATS');
    const options = { history: 1, timeout: ANSWER_MS_MAX, description: 'State of pickers that outlives them' };
    this.#bucket ??= new kv.Kvm(connection).create(BUCKET, options);
    try {
      return await this.#bucket;
    } catch (error) {
      this.#bucket = undefined;
      throw error;
    }
  }

  #key(name: KeptName): string {
    return `${keyToken(this.#group)}.${name}`;
  }
}

/** A name as one token of a key. */
function keyToken(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, (character) => `=${character.codePointAt(0)!.toString(16)}`);
}
