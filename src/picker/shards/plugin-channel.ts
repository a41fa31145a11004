import { BroadcastChannel } from 'node:worker_threads';

type Receive = (message: unknown) => void;

/**
 * Channels between the instances of a plugin on the shards of one picker.
 * @param group name that these shards share
 */
export class PluginChannels {
  readonly #group: string;
  readonly #open: BroadcastChannel[] = [];

  constructor(group: string) {
    this.#group = group;
  }

  /** Joins the channel of a plugin. @returns a function that sends to all other shards */
  join(plugin: string, receive: Receive): (message: unknown) => void {
    const channel = new BroadcastChannel(`pointsman ${this.#group} ${plugin}`);
    channel.onmessage = (event) => receive((event as { data: unknown }).data);
    channel.unref();
    this.#open.push(channel);
    return (message) => channel.postMessage(message);
  }

  /** Leaves all channels. */
  close(): void {
    for (const channel of this.#open) channel.close();
    this.#open.length = 0;
  }
}
