// Probes of a kubelet: whether a container answers, over HTTP or with the health service of gRPC.
import { connect } from 'node:http2';

const PROBE_MS_MAX = 3_000;
const SERVING = 1;

/** What a container says of its probe in its pod. */
export interface Probe {
  readonly httpGet?: { readonly path?: string; readonly port: number };
  readonly grpc?: { readonly port: number; readonly service?: string };
}

/** A failure of any kind is a no. @throws for a probe of another kind */
export async function answers(probe: Probe, address: string): Promise<boolean> {
  const { httpGet, grpc } = probe;
  if (httpGet !== undefined) return answersHttp(`http://${address}:${httpGet.port}${httpGet.path ?? '/'}`);
  if (grpc !== undefined) return answersHealth(`http://${address}:${grpc.port}`, grpc.service ?? '');
  throw new Error(`a probe is httpGet or grpc here, got ${JSON.stringify(probe)}`);
}

async function answersHttp(url: string): Promise<boolean> {
  try {
    const { status } = await fetch(url, { signal: AbortSignal.timeout(PROBE_MS_MAX) });
    return status >= 200 && status < 400;
  } catch {
    return false;
  }
}

function answersHealth(origin: string, service: string): Promise<boolean> {
  return new Promise((resolve) => {
    const session = connect(origin);
    const end = (healthy: boolean) => {
      clearTimeout(timer);
      session.destroy();
      resolve(healthy);
    };
    const timer = setTimeout(end, PROBE_MS_MAX, false);
    session.on('error', () => end(false));
    const stream = session.request({
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    const pieces: Buffer[] = [];
    stream.on('data', (piece: Buffer) => pieces.push(piece));
    stream.on('error', () => end(false));
    stream.on('end', () => end(statusOf(Buffer.concat(pieces)) === SERVING));
    stream.end(checkRequest(service));
  });
}

/** HealthCheckRequest with its one field, in the frame of gRPC. */
function checkRequest(service: string): Buffer {
  const name = Buffer.from(service);
  const message = name.length === 0 ? name : Buffer.concat([Buffer.from([0x0a, name.length]), name]);
  const frame = Buffer.alloc(5);
  frame.writeUInt32BE(message.length, 1);
  return Buffer.concat([frame, message]);
}

/** Field 1 of HealthCheckResponse behind the five bytes of the frame; undefined = none. */
function statusOf(answer: Buffer): number | undefined {
  return answer[5] === 0x08 ? answer[6] : undefined;
}
