import type { TransportName } from '../../contract/listen-settings.js';
import type { HealthListener, HealthListenOptions, HealthSource, Transport } from '../transport.js';

/** The transport of this name. Only its own code is loaded. */
export async function createTransport(name: TransportName): Promise<Transport> {
  if (name === 'lean') return new (await import('./http2/lean.js')).LeanTransport();
  return new (await import('./grpc.js')).GrpcTransport();
}

/** Serves `grpc.health.v1.Health` alone (port 9003). Rejects when the port cannot be bound. */
export async function listenHealth(
  name: TransportName,
  options: HealthListenOptions,
  health: HealthSource,
): Promise<HealthListener> {
  if (name === 'lean') return (await import('./http2/lean.js')).listenHealth(options, health);
  return (await import('./grpc.js')).listenHealth(options, health);
}
