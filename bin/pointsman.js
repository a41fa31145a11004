#!/usr/bin/env node
// Starts the program; on a Node.js that is too old it hands over to the one that the project brings along.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';

const [major, minor] = process.versions.node.split('.').map(Number);
if (major > 22 || (major === 22 && minor >= 12)) {
  const { main } = await import('../dist/cli/main.js');
  await main(process.argv.slice(2));
} else {
  let newer;
  try {
    newer = createRequire(import.meta.url).resolve('node/bin/node');
  } catch {
    console.error(`pointsman needs Node.js 22.12 or newer; this is ${process.versions.node}`);
    process.exit(1);
  }
  // The IPC channel tells the child when this process is gone, however it ended.
  const child = spawn(newer, [new URL(import.meta.url).pathname, ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, POINTSMAN_PARENT: '1' },
  });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(code ?? (signal ? 128 : 1)));
}
