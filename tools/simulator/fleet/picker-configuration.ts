import type { AdaptationSettings } from '../../../src/config/adaptation.js';
import type { FlowControlSettings } from '../../../src/contract/queue-settings.js';
import type { SaturationSettings } from '../../../src/contract/saturation-settings.js';
import type { CompiledScheduling } from '../../../src/scheduling/program.js';
import type { Ablation } from './ablation.js';
import type { MakeAdmissionRule } from './admission-rule.js';

/** Program of a picker: the part of a loaded configuration that takes part in decisions. */
export interface PickerConfiguration {
  readonly scheduling: CompiledScheduling;
  readonly adaptation: AdaptationSettings;
  /** Queues in front of the pool; absent = none. */
  readonly flowControl?: FlowControlSettings | undefined;
  readonly saturationDetector?: SaturationSettings | undefined;
  /**
   * Marginal cost is reckoned with the true costs of the engines; the prefix index is told of sent prompts and of
   * events.
   */
  readonly omniscient?: boolean | undefined;
  /** Differences from the real picker. */
  readonly ablation?: Ablation | undefined;
  /** Rule of another router by which turns of named sessions are held. */
  readonly admission?: MakeAdmissionRule | undefined;
}
