import { field, text, varintField, WireReader, WireType } from '../../runtime/protobuf.js';
import type { ServingStatus } from '../transport.js';

/** `grpc.health.v1.HealthCheckResponse.ServingStatus`. */
const STATUS_NUMBER: Readonly<Record<ServingStatus, number>> = { SERVING: 1, NOT_SERVING: 2, SERVICE_UNKNOWN: 3 };
const SERVICE_FIELD = 1 * 8 + WireType.bytes;

/** The service name in a `HealthCheckRequest`. */
export function decodeHealthRequest(bytes: Uint8Array): string {
  const reader = new WireReader(bytes);
  let service = '';
  while (reader.at < reader.end) {
    const tag = reader.tag();
    if (tag !== SERVICE_FIELD) {
      reader.skip(tag);
      continue;
    }
    const length = reader.length();
    service = reader.bytes.toString('utf8', reader.at, reader.at + length);
    reader.at += length;
  }
  return service;
}

/** A `HealthCheckResponse`. */
export function encodeHealthResponse(status: ServingStatus): Buffer {
  return varintField(1, STATUS_NUMBER[status]);
}

/** A `HealthListResponse`: the status of every service by name. */
export function encodeHealthList(statuses: readonly (readonly [service: string, status: ServingStatus])[]): Buffer {
  return Buffer.concat(
    statuses.map(([service, status]) => field(1, field(1, text(service)), field(2, encodeHealthResponse(status)))),
  );
}
