import type { Rejection } from '../scheduling/decision.js';

/** What admission looks at. */
export interface AdmissionRequest {
  /** Below zero = sheddable. */
  readonly priority: number;
  readonly fairnessId: string;
  /** Addresses that the proxy allows; undefined = the whole pool. */
  readonly subset: readonly string[] | undefined;
}

/** Decides whether a request may be placed now. */
export interface Admission {
  admit(request: AdmissionRequest): 'admitted' | Rejection;
}
