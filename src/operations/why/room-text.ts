import type { LoggedEndpoint } from '../../core/decision-columns.js';

/** Judges the room on endpoints, as the detector of the configuration does. */
export interface RoomJudge {
  /** Name of the detector. */
  readonly detector: string;
  /** Whether windows and limits are learned, so that an endpoint has more than one bound. */
  readonly learns: boolean;
  /** Use of an endpoint where flow control is off, 1 = full. */
  saturation(endpoint: LoggedEndpoint): number;
}

/**
 * Room on an endpoint in words.
 * @param ceiling share of the endpoint that the request's band may fill; undefined = flow control is off
 */
export function roomText(endpoint: LoggedEndpoint, ceiling: number | undefined, judge: RoomJudge): string {
  const { gate, inflight } = endpoint;
  const used = gate?.saturation ?? judge.saturation(endpoint);
  const full = `${Math.round(used * 100)} % full`;
  const parts = [ceiling === undefined || ceiling === 1 ? full : `${full}, may be ${Math.round(ceiling * 100)} %`];
  if (gate !== undefined && judge.learns) {
    parts.push(`${gate.pending} of ${Math.round(gate.window)} prompt tokens pending`);
    if (Number.isFinite(gate.limit)) parts.push(`${inflight} of ${Math.floor(gate.limit)} requests`);
  }
  return parts.join(', ');
}
