import type { Rejection } from '../scheduling/decision.js';
import type { Admission, AdmissionRequest } from './admission.js';

const SHED: Rejection = {
  kind: 'rejected',
  code: 'ResourceExhausted',
  message: 'system saturated, sheddable request dropped',
  reason: undefined,
};

/**
 * The incumbent's rule when flow control is off: sheddable requests are turned away while the pool is saturated,
 * everything else goes on.
 */
export class LegacyAdmission implements Admission {
  readonly #saturation: (request: AdmissionRequest) => number;

  /** @param saturation of the endpoints that the request may use; 1 = full, also for a pool without endpoints */
  constructor(saturation: (request: AdmissionRequest) => number) {
    this.#saturation = saturation;
  }

  admit(request: AdmissionRequest): 'admitted' | Rejection {
    return request.priority < 0 && this.#saturation(request) >= 1 ? SHED : 'admitted';
  }
}
