import type { LowerPlace } from '../../../src/contract/block-place.js';
import type { EventQueue } from './events.js';
import type { KvEventSettings } from './fleet-settings.js';
import type { CacheListener } from './kv-blocks.js';
import type { SimulatedPicker } from './picker.js';
import type { RandomStream } from './random-stream.js';

type Batch =
  | { readonly kind: 'stored'; readonly parent: number; readonly contents: number[] }
  | { readonly kind: 'removed'; readonly contents: number[] }
  | { readonly kind: 'moved'; readonly place: LowerPlace; readonly contents: number[] };

/** Tells the pickers what one engine's cache gained and lost, a batch per step as vLLM does, late and with losses. */
export class KvEventFeed implements CacheListener {
  readonly #slot: number;
  readonly #settings: KvEventSettings;
  readonly #pickers: readonly SimulatedPicker[];
  readonly #events: EventQueue;
  readonly #random: RandomStream;
  #batches: Batch[] = [];

  constructor(
    slot: number,
    settings: KvEventSettings,
    pickers: readonly SimulatedPicker[],
    events: EventQueue,
    random: RandomStream,
  ) {
    this.#slot = slot;
    this.#settings = settings;
    this.#pickers = pickers;
    this.#events = events;
    this.#random = random;
  }

  stored(content: number, parent: number): void {
    const last = this.#batches.at(-1);
    if (last?.kind === 'stored' && last.contents.at(-1) === parent) last.contents.push(content);
    else this.#batches.push({ kind: 'stored', parent, contents: [content] });
  }

  removed(content: number): void {
    const last = this.#batches.at(-1);
    if (last?.kind === 'removed') last.contents.push(content);
    else this.#batches.push({ kind: 'removed', contents: [content] });
  }

  moved(content: number, place: LowerPlace): void {
    const last = this.#batches.at(-1);
    if (last?.kind === 'moved' && last.place === place) last.contents.push(content);
    else this.#batches.push({ kind: 'moved', place, contents: [content] });
  }

  /** Sends the changes of a step that is over. */
  flush(): void {
    const batches = this.#batches;
    if (batches.length === 0) return;
    this.#batches = [];
    const { delayMs, loss } = this.#settings;
    for (const picker of this.#pickers) {
      if (loss > 0 && this.#random.uniform() < loss) continue;
      this.#events.after(delayMs, () => {
        for (const batch of batches) this.#apply(picker, batch);
      });
    }
  }

  #apply(picker: SimulatedPicker, batch: Batch): void {
    if (batch.kind === 'stored') picker.blocks.stored(this.#slot, batch.parent, batch.contents);
    else if (batch.kind === 'moved') picker.blocks.moved(this.#slot, batch.place, batch.contents);
    else picker.blocks.removed(this.#slot, batch.contents);
  }

  /** Drops what was still to be sent: the engine has lost everything. */
  clear(): void {
    this.#batches = [];
    this.#events.after(this.#settings.delayMs, () => {
      for (const picker of this.#pickers) picker.blocks.cleared(this.#slot);
    });
  }
}
