import type * as Nats from '@nats-io/transport-node';
import { optionalPackage } from '../runtime/optional-package.js';

/** The client of NATS; this module is loaded only where replication is configured. */
export const nats = optionalPackage<typeof Nats>('@nats-io/transport-node', 'replicas on NATS');
