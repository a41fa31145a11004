import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { answers } from '../../scripts/gateway-conformance/probes.ts';
import { resultsOf } from '../../scripts/gateway-conformance/results.ts';
import { pointsman } from '../serve/program.ts';

const settings = fileURLToPath(new URL('../../scripts/gateway-conformance/', import.meta.url));

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A health service: 1 = SERVING, 2 = NOT_SERVING. It knows one service, by its name in the request. */
function healthService(service: string, status: number): Promise<number> {
  const server = createServer();
  server.on('stream', (stream) => {
    stream.once('data', (frame: Buffer) => {
      const known = frame.subarray(7).toString() === service;
      stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
      stream.end(known ? Buffer.from([0, 0, 0, 0, 2, 0x08, status]) : Buffer.alloc(0));
    });
  });
  return portOf(server);
}

describe('the probes of the pods of the conformance suite', () => {
  const local = '127.0.0.1';

  it.each([
    ['SERVING', 1, true],
    ['NOT_SERVING', 2, false],
  ])('a gRPC probe of a service that is %s', async (_word, status, expected) => {
    const port = await healthService('inference-extension', status);
    expect(await answers({ grpc: { port, service: 'inference-extension' } }, local)).toBe(expected);
    expect(await answers({ grpc: { port, service: 'another' } }, local)).toBe(false);
  });

  it('an HTTP probe asks its path, and any status below 400 is a yes', async () => {
    const server = createHttpServer(({ url }, answer) => answer.writeHead(url === '/ready' ? 200 : 503).end());
    const port = await portOf(server);
    expect(await answers({ httpGet: { port, path: '/ready' } }, local)).toBe(true);
    expect(await answers({ httpGet: { port } }, local)).toBe(false);
  });

  it('a port where nobody listens is a no, a probe of another kind an error', async () => {
    const server = createHttpServer();
    const port = await portOf(server);
    await new Promise((resolve) => server.close(resolve));
    expect(await answers({ httpGet: { port } }, local)).toBe(false);
    expect(await answers({ grpc: { port } }, local)).toBe(false);
    await expect(answers({}, local)).rejects.toThrow('a probe is httpGet or grpc here, got {}');
  });
});

describe('the pickers of the conformance suite', () => {
  it.each([
    ['picker.yaml', ['lint', 'picker.yaml']],
    ['pools.yaml', ['lint', '--pools', 'pools.yaml']],
  ])('%s has no error', (name, args) => {
    const { status, stdout, stderr } = pointsman(...args.map((arg) => (arg === name ? settings + name : arg)));
    expect({ status, errors: `${stdout}${stderr}`.match(/error: .*/g) }).toEqual({ status: 0, errors: null });
  });
});

describe('the results of the conformance suite', () => {
  it('the results are one line for each test of the suite, without its parts, and a sum without skipped ones', () => {
    const log = [
      '    --- PASS: TestConformance/A (1.00s)',
      '        --- PASS: TestConformance/A/part (1.00s)',
      '    --- FAIL: TestConformance/B (2.50s)',
      '    --- SKIP: TestConformance/C (0.00s)',
    ];
    expect(resultsOf(log.join('\n'))).toBe('PASS: A (1.00s)\nFAIL: B (2.50s)\nSKIP: C (0.00s)\n1 of 2 tests pass');
  });

  it('a suite that has not come to its tests passes none', () => {
    expect(resultsOf('no GatewayClass\nFAIL\n')).toBe('0 of 0 tests pass');
  });
});
