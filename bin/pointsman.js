#!/usr/bin/env node
// Starts the program; on a Node.js that is too old it hands over to the one that the project brings along. Written so that
// every Node.js that knows modules can read it (12.20): newer syntax would be its only message.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
// Older versions lack some of its names; asked for one by one, they could not even hand over.
import * as nodeModule from 'node:module';
import { fileURLToPath } from 'node:url';

const beside = (path) => new URL(`../${path}`, import.meta.url);
const [major, minor] = process.versions.node.split('.').map(Number);

if (!existsSync(beside('dist/program/main.js'))) {
  end(`is not built: run "npm ci && npm run build" in ${fileURLToPath(beside(''))}`);
} else if (major > 22 || (major === 22 && minor >= 12)) {
  // Compiled code is kept beside the program, where nobody can write who could not change the program itself. In a place
  // that cannot be written to nothing is kept. Threads learn of it by the environment.
  if (process.env.NODE_COMPILE_CACHE === undefined) {
    process.env.NODE_COMPILE_CACHE = fileURLToPath(beside('dist/program/compiled'));
  }
  nodeModule.enableCompileCache(process.env.NODE_COMPILE_CACHE);
  import('../dist/program/main.js').then(({ main }) => main(process.argv.slice(2)));
} else {
  handOver();
}

function end(message) {
  console.error(`pointsman: ${message}`);
  process.exit(1);
}

/** Runs the program with the Node.js that npm has installed into the project. */
function handOver() {
  let newer;
  try {
    newer = nodeModule.createRequire(import.meta.url).resolve('node/bin/node');
  } catch {
    end(`needs Node.js 22.12 or newer; this is ${process.versions.node}`);
  }
  // The IPC channel tells the child when this process is gone, however it ended.
  const child = spawn(newer, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: Object.assign({}, process.env, { POINTSMAN_PARENT: '1' }),
  });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(code === null ? (signal ? 128 : 1) : code));
}
