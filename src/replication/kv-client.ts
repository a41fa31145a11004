import type * as Kv from '@nats-io/kv';
import { optionalPackage } from '../runtime/optional-package.js';

/** The client of JetStream's key-value store; this module is loaded only where `replication.jetStream` is on. */
export const kv = optionalPackage<typeof Kv>('@nats-io/kv', 'replicas that keep their state in JetStream');
