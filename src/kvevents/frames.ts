/** One message of a publisher. */
export interface EventMessage {
  readonly topic: string;
  readonly number: number;
  readonly payload: Uint8Array;
}

/** A live message: topic, number of eight bytes (big-endian), payload. Undefined when it is something else. */
export function eventMessage(frames: readonly Buffer[]): EventMessage | undefined {
  const [topic, number, payload] = frames;
  if (frames.length !== 3 || number!.length !== 8) return undefined;
  return { topic: topic!.toString('utf8'), number: Number(number!.readBigUInt64BE()), payload: payload! };
}

/**
 * An answer to a replay request: number and payload come last; before them nothing, an empty frame, or an empty frame
 * and a topic, by the age of the engine. `end` behind the last message; undefined when it is something else.
 */
export function replayedMessage(frames: readonly Buffer[]): Omit<EventMessage, 'topic'> | 'end' | undefined {
  const number = frames.at(-2);
  const payload = frames.at(-1);
  if (number === undefined || payload === undefined || number.length !== 8) return undefined;
  if (number.readBigInt64BE() === -1n) return 'end';
  return { number: Number(number.readBigUInt64BE()), payload };
}

/** A request for all messages from `number` on. */
export function replayRequest(number: number): [Buffer, Buffer] {
  const from = Buffer.alloc(8);
  from.writeBigUInt64BE(BigInt(number));
  return [Buffer.alloc(0), from];
}

/** Parts of a topic, `kv@<endpoint>@<model>`; missing ones are undefined. */
export function topicParts(topic: string): {
  readonly endpoint: string | undefined;
  readonly model: string | undefined;
} {
  const [prefix, endpoint, ...model] = topic.split('@');
  if (prefix !== 'kv' || endpoint === undefined) return { endpoint: undefined, model: undefined };
  return { endpoint: endpoint || undefined, model: model.join('@') || undefined };
}
