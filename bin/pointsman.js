#!/usr/bin/env node
// Starts the program; on a Node.js that is too old it hands over to the one that the project brings along. Written so
// that every Node.js that knows modules can read it (12.20): newer syntax would be its only message.
// biome-ignore-all lint/style/useNodejsImportProtocol: require() of Node.js 12 does not know these names.
const { spawn } = require('child_process');
const { existsSync } = require('fs');
const nodeModule = require('module');
const { join } = require('path');

const beside = (path) => join(__dirname, '..', path);
const [major, minor] = process.versions.node.split('.').map(Number);

if (!existsSync(beside('dist/program/main.js'))) {
  end(`is not built: run "npm ci && npm run build" in ${beside('/')}`);
} else if (major > 22 || (major === 22 && minor >= 12)) {
  run(process.argv.slice(2));
} else {
  handOver();
}

/** `serve` is a program of its own, which keeps its compiled code itself. */
function run(argv) {
  const [first = ''] = argv;
  const isHelp =
    /^(-version|--version|-help|--help|-h)$/.test(first) && (argv.length === 1 || first.includes('version'));
  if (first === 'serve' || first === '' || (first.startsWith('-') && !isHelp)) {
    require('../dist/program/start-serve.cjs').startServe(first === 'serve' ? argv.slice(1) : argv);
    return;
  }
  // Compiled code is kept beside the program, where nobody can write who could not change the program itself. In a
  // place that cannot be written to nothing is kept. Threads learn of it by the environment.
  if (process.env.NODE_COMPILE_CACHE === undefined) {
    process.env.NODE_COMPILE_CACHE = beside('dist/program/compiled');
  }
  nodeModule.enableCompileCache(process.env.NODE_COMPILE_CACHE);
  import('../dist/program/main.js').then(({ main }) => main(argv));
}

function end(message) {
  console.error(`pointsman: ${message}`);
  process.exit(1);
}

/** Runs the program with the Node.js that npm has installed into the project. */
function handOver() {
  let newer;
  try {
    newer = require.resolve('node/bin/node');
  } catch {
    end(
      `needs Node.js 22.12 or newer; this is ${process.versions.node}: install a newer one, or run "npm install ` +
        'node@24" where ' +
        'pointsman is installed',
    );
  }
  // The IPC channel tells the child when this process is gone, however it ended.
  const child = spawn(newer, [__filename, ...process.argv.slice(2)], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    env: Object.assign({}, process.env, { POINTSMAN_PARENT: '1' }),
  });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('exit', (code, signal) => process.exit(code === null ? (signal ? 128 : 1) : code));
}
