import type { Medium } from '../../core/types.js';
import type { ScheduleInput } from '../decision.js';
import type { RequestHeaders } from '../request-headers.js';
import type { HookRequest } from './hook-request.js';

/** A request as hook plugins see it. Fields from the body are set before the decision. */
export class HookRequestRecord implements HookRequest {
  readonly headers: RequestHeaders;
  readonly path: string;
  readonly priority: number;
  readonly attributes = new Map<string, unknown>();
  fairnessId: string | undefined;
  model = '';
  targetModel = '';
  promptBytes = 0;
  media: readonly Medium[] = [];
  blockTokens = 0;
  profile = '';
  /** Whether the producers have run. */
  produced = false;
  /** Set while the request may be held. */
  chain: (() => BigUint64Array) | undefined;

  constructor(headers: RequestHeaders, path: string, priority: number, fairnessId: string | undefined) {
    this.headers = headers;
    this.path = path;
    this.priority = priority;
    this.fairnessId = fairnessId;
  }

  /** Sets the fields from the body. */
  understand(body: Pick<ScheduleInput, 'model' | 'targetModel' | 'promptBytes' | 'media'>): void {
    this.model = body.model;
    this.targetModel = body.targetModel;
    this.promptBytes = body.promptBytes;
    this.media = body.media ?? [];
  }

  promptChain(): BigUint64Array {
    return this.chain?.() ?? new BigUint64Array();
  }
}
