import { execFileSync } from 'node:child_process';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { freePorts } from '../../dist/src/serve/port.js';

const module = fileURLToPath(new URL('../../dist/src/serve/port.js', import.meta.url));

/** Lowest port that Linux gives to outgoing connections. */
const OUTGOING_FIRST = 32_768;

test('free ports are different, and lower than those of outgoing connections', async () => {
  const ports = [...(await freePorts(20)), ...(await freePorts(20))];

  expect(new Set(ports).size).toBe(40);
  expect(Math.max(...ports)).toBeLessThan(OUTGOING_FIRST);
});

test('a port that somebody listens on is not free', async () => {
  const [before] = (await freePorts(1)) as [number];
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(before + 1, '127.0.0.1', resolve));

  const ports = await freePorts(3);
  server.close();

  expect(ports).not.toContain(before + 1);
});

test('processes that run side by side are given different ports', () => {
  const script = `import { freePorts } from ${JSON.stringify(module)}; console.log((await freePorts(10)).join(' '))`;
  const ports = [1, 2, 3].flatMap(() =>
    execFileSync(process.execPath, ['--input-type=module', '--eval', script], { encoding: 'utf8' }).trim().split(' '),
  );

  expect(new Set(ports).size).toBe(30);
});
