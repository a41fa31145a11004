import { BroadcastChannel } from 'node:worker_threads';

type Receive = (message: unknown) => void;

/**
 * Channels between the instances that one plugin has on the shards of one picker.
 * @param group name that these shards share
 */
export class PluginChannels {
  readonly #group: string;
  readonly #open: BroadcastChannel[] = [];

  constructor(group: string) {
    this.#group = group;
  }

  /** Join the channel of a plugin. @returns the way to send to all other shards */
  join(plugin: string, receive: Receive): (message: unknown) => void {
    const channel = new BroadcastChannel(`pointsman ${this.#group} ${plugin}`);
    channel.onmessage = (event) => receive((event as { data: unknown }).data);
    channel.unref();
    this.#open.push(channel);
    return (message) => channel.postMessage(message);
  }

  /** Leave all channels. */
  close(): void {
    for (const channel of this.#open) channel.close();
    this.#open.length = 0;
  }
}
