import type * as ZeroMq from 'zeromq';
import { optionalPackage } from '../runtime/optional-package.js';

/** The sockets on which engines publish their KV events; this room is loaded only where events are followed. */
export const zeromq = optionalPackage<typeof ZeroMq>('zeromq', 'KV events');
