import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { skipReason } from './envoy.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TEST_MS_MAX = 90_000;

const section = /^## Run it behind Envoy\n(.*?)^## /ms.exec(readFileSync(`${ROOT}README.md`, 'utf8'))![1]!;
const [install, start, ask] = [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, commands]) => commands!);

/** The ports of the README are those of every other test's neighbour: a network of its own, where that is allowed. */
const OWN_NETWORK = ['--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];
const canIsolate = spawnSync('unshare', [...OWN_NETWORK, 'true']).status === 0;

/** The commands as they stand in the README, with patience before the last one. */
const SCRIPT = `
${start}
ask() {
${ask}}
for attempt in $(seq 60); do
  ask 2>/dev/null >answer.$$ && grep -q '^HTTP/1.1 200' answer.$$ && break
  sleep 0.5
done
cat answer.$$; rm answer.$$
kill $(jobs -p); wait
`;

describe.skipIf(skipReason !== '')(`the README's Envoy section${skipReason}`, () => {
  test('the section installs and builds what its commands start', () => {
    expect(install).toBe('npm ci && npm run build\nsh scripts/install-envoy.sh\n');
    const [program] = /^\S+envoy(?= -c)/m.exec(start!) ?? [];
    expect(existsSync(`${ROOT}${program}`), `${program} is there`).toBe(true);
  });

  test(
    'the commands of the section answer a chat, word for word',
    async () => {
      const shell = ['bash', '-c', SCRIPT];
      const [program, ...args] = canIsolate ? ['unshare', ...OWN_NETWORK, ...shell] : shell;
      const child = spawn(program!, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.setEncoding('utf8').on('data', (text) => (output += text));
      await new Promise((resolve) => child.on('close', resolve));
      expect(output).toMatch(/^HTTP\/1\.1 200 OK/m);
      expect(output).toMatch(/^x-inference-pod: 127\.0\.0\.1:800[01]/m);
      expect(output).toContain('"object":"chat.completion"');
    },
    TEST_MS_MAX,
  );
});
