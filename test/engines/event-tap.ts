import { Subscriber } from 'zeromq';

/** A message of an engine, as it came: topic, number, payload. */
export type TappedMessage = readonly [topic: string, number: number, payload: Uint8Array];

/** Listens to the KV events of one engine beside a picker. */
export class EventTap {
  readonly #socket = new Subscriber({ linger: 0 });
  #messages: TappedMessage[] = [];

  constructor(address: string) {
    this.#socket.connect(address);
    this.#socket.subscribe('');
    void this.#follow();
  }

  /** Messages since the last call. */
  take(): readonly TappedMessage[] {
    const taken = this.#messages;
    this.#messages = [];
    return taken;
  }

  close(): void {
    this.#socket.close();
  }

  async #follow(): Promise<void> {
    for await (const [topic, number, payload] of this.#socket) {
      this.#messages.push([topic!.toString(), Number(number!.readBigUInt64BE()), payload!]);
    }
  }
}
