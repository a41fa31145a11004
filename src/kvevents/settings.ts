import type { LabelSelector } from '../scheduling/filters/label-selector.js';

/** How the events of engines are followed. */
export interface KvEventSettings {
  /** Where engines connect to; undefined = nowhere. */
  readonly bind: string | undefined;
  /** Ports on which every endpoint publishes and replays; undefined = they are not asked. */
  readonly connect: { readonly port: number; readonly replayPort: number | undefined } | undefined;
  readonly topicFilter: string;
  /** Model that the engines serve, where their topics do not say it. */
  readonly model: string | undefined;
  /** Endpoints that publish, as a Kubernetes selector, and their namespace; undefined = all. */
  readonly selector: LabelSelector | undefined;
  readonly namespace: string | undefined;
  /** How long a block counts as held that was only sent to an endpoint; undefined = not at all. */
  readonly speculativeTtlMs: number | undefined;
}
