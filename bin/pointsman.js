#!/usr/bin/env node
// Starts the program; on a Node.js that is too old it hands over to the one that the project brings along.
import { spawn } from 'node:child_process';
// Older versions lack some of its names; asked for one by one, they could not even hand over.
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';

const [major, minor] = process.versions.node.split('.').map(Number);
if (major > 22 || (major === 22 && minor >= 12)) {
  // Compiled code is kept beside the program, where nobody can write who could not change the program itself. In a place
  // that cannot be written to nothing is kept. Threads learn of it by the environment.
  process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../dist/program/compiled', import.meta.url));
  nodeModule.enableCompileCache(process.env.NODE_COMPILE_CACHE);
  const { main } = await import('../dist/program/main.js');
  await main(process.argv.slice(2));
} else {
  let newer;
  try {
    newer = nodeModule.createRequire(import.meta.url).resolve('node/bin/node');
  } catch {
    console.error(`pointsman needs Node.js 22.12 or newer; this is ${process.versions.node}`);
    process.exit(1);
  }
  // The IPC channel tells the child when this process is gone, however it ended.
  const child = spawn(newer, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, POINTSMAN_PARENT: '1' },
  });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(code ?? (signal ? 128 : 1)));
}
