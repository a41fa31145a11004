import { describe, expect, it } from 'vitest';
import { locate } from '../../dist/src/picker/control/informers.js';
import { endpointOf } from '../pool/endpoints.js';

const plain = { port: undefined, atNode: false, clusters: false };
interface Where {
  readonly port?: number;
  readonly atNode?: boolean;
  readonly clusters?: boolean;
}
const at = (labels: Record<string, string>, where: Where = {}, hostName?: string) =>
  locate({ ...endpointOf('a', '10.0.0.1', 8000, labels), hostName }, { ...plain, ...where });

describe('the page of an endpoint', () => {
  it('the page of an endpoint is its own address and port, or the port of the source', () => {
    expect(at({})).toEqual({ host: '10.0.0.1', port: 8000 });
    expect(at({}, { port: 9400 })).toEqual({ host: '10.0.0.1', port: 9400 });
  });

  it('the page of an endpoint is asked for under the host name that the endpoints file gives', () => {
    expect(at({}, {}, 'gw.example.com')).toEqual({ host: '10.0.0.1', port: 8000, serverName: 'gw.example.com' });
  });

  it('the page of an endpoint is where the labels of a cluster say, and only of a cluster', () => {
    const labels = { metricsAddress: 'metrics.example.com', metricsPort: '9090' };
    expect(at(labels, { clusters: true })).toEqual({ host: 'metrics.example.com', port: 9090 });
    expect(at(labels)).toEqual({ host: '10.0.0.1', port: 8000 });
    expect(at({ metricsPort: '9090' }, { clusters: true })).toEqual({ host: '10.0.0.1', port: 9090 });
  });

  it('the page of an endpoint does not move for a label that is no port', () => {
    for (const metricsPort of ['', '0', '65536', '1.5', 'x'])
      expect(at({ metricsPort }, { clusters: true }).port).toBe(8000);
  });

  it('the page of an endpoint is on the node that its label names', () => {
    expect(at({ nodeAddress: '10.1.0.1' }, { atNode: true, port: 9400 })).toEqual({ host: '10.1.0.1', port: 9400 });
    expect(at({}, { atNode: true, port: 9400 }).host).toBe('10.0.0.1');
  });
});
