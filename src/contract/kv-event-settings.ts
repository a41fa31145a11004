import type { LowerPlace, TierPrices } from './block-place.js';
import type { LabelSelector } from './label-selector.js';

/** Settings of KV events. */
export interface KvEventSettings {
  /** Address that engines connect to; undefined = none. */
  readonly bind: string | undefined;
  /** Ports on which every endpoint publishes and replays; undefined = they are not asked. */
  readonly connect: { readonly port: number; readonly replayPort: number | undefined } | undefined;
  readonly topicFilter: string;
  /** Model that the engines serve, for topics that do not name it. */
  readonly model: string | undefined;
  /** Endpoints that publish, as a Kubernetes selector, and their namespace; undefined = all. */
  readonly selector: LabelSelector | undefined;
  readonly namespace: string | undefined;
  /** Time for which a dispatched block counts as held without an event; undefined = none. */
  readonly speculativeTtlMs: number | undefined;
  readonly tierPrices: TierPrices;
  /** Tiers whose price the configuration gives, so that it is not learned. */
  readonly givenTiers: readonly LowerPlace[];
}
