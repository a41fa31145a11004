/** A command of the program. Its module is loaded when it runs. */
export interface CommandEntry {
  readonly name: string;
  /** The command as typed. */
  readonly usage: string;
  readonly summary: string;
  /** Runs the command with its arguments; resolves to the exit code. */
  run(argv: readonly string[]): Promise<number>;
}

/** Every command, in the order of the help. */
export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'serve',
    usage: '[serve] [flags]',
    summary: 'answer ext_proc requests (the default command)',
    run: async (argv) => done((await import('../src/serve/serve.js')).runServe(argv)),
  },
  {
    name: 'demo',
    usage: 'demo',
    summary: 'picker, gateway, simulated servers and a load',
    run: async (argv) => (await import('./demo/demo.js')).runDemo(argv),
  },
  {
    name: 'lint',
    usage: 'lint <file>',
    summary: 'errors and warnings of a configuration, a pools file (--pools) or an Envoy configuration (--envoy)',
    run: async (argv) => {
      if (argv.includes('--kubernetes')) {
        const { runPreflight } = await import('./preflight/preflight.js');
        return runPreflight(argv.filter((argument) => argument !== '--kubernetes'));
      }
      if (argv.some((argument) => /^--envoy(=|$)/.test(argument))) {
        return (await import('./lint/envoy.js')).runEnvoyLint(withoutValue(argv));
      }
      if (argv.some((argument) => /^--pools(=|$)/.test(argument))) {
        return (await import('./lint/pools.js')).runPoolsLint(withoutValue(argv));
      }
      return (await import('./lint/lint.js')).runLint(argv);
    },
  },
  {
    name: 'preflight',
    usage: 'preflight [flags]',
    summary: 'what a picker would serve from its cluster; with --gateway, which settings of a gateway limit it',
    run: async (argv) =>
      argv.some((argument) => /^--gateway(=|$)/.test(argument))
        ? (await import('./preflight/gateway.js')).runGatewayPreflight(withoutValue(argv))
        : (await import('./preflight/preflight.js')).runPreflight(argv),
  },
  {
    name: 'explain',
    usage: 'explain <file>',
    summary: 'scores and pick for one request, without a pool',
    run: async (argv) => (await import('./explain/explain.js')).runExplain(argv),
  },
  {
    name: 'why',
    usage: 'why <id>',
    summary: 'why a request of a running picker went where it went',
    run: async (argv) => (await import('./why/why.js')).runWhy(argv),
  },
  {
    name: 'replay',
    usage: 'replay <recording>',
    summary: 'what another configuration would have picked',
    run: async (argv) => (await import('./replay/replay.js')).runReplay(argv),
  },
  {
    name: 'top',
    usage: 'top',
    summary: 'endpoints and traffic of a running picker, live',
    run: async (argv) => (await import('./top/top.js')).runTop(argv),
  },
  {
    name: 'doctor',
    usage: 'doctor',
    summary: 'what is wrong or odd with a running picker',
    run: async (argv) => (await import('./doctor/doctor.js')).runDoctor(argv),
  },
  {
    name: 'schema',
    usage: 'schema',
    summary: 'JSON Schema of configurations, for editors',
    run: async (argv) => done((await import('./schema/schema.js')).runSchema(argv)),
  },
  {
    name: 'weights',
    usage: 'weights export',
    summary: 'learned costs as a configuration',
    run: async (argv) => done((await import('./weights/weights.js')).runWeights(argv)),
  },
  {
    name: 'simulate',
    usage: 'simulate <suite>',
    summary: 'policies compared on a simulated fleet',
    run: async (argv) => (await import('./simulator/simulate.js')).runSimulate(argv),
  },
  {
    name: 'bench',
    usage: 'bench [file]',
    summary: 'time of a decision and of each plugin',
    run: async (argv) => (await import('./bench/bench.js')).runBench(argv),
  },
  {
    name: 'model-server',
    usage: 'model-server',
    summary: 'one simulated model server',
    run: async (argv) => done((await import('./simulator/model-server.js')).runModelServer(argv)),
  },
  {
    name: 'gateway',
    usage: 'gateway',
    summary: 'a small proxy that asks a picker, for development',
    run: async (argv) => done((await import('./gateway/gateway-command.js')).runGateway(argv)),
  },
];

/** `--envoy --help` asks for the help with `--envoy`: no file is called so. */
function withoutValue(argv: readonly string[]): readonly string[] {
  const help = argv.find((argument) => argument === '--help' || argument === '-h');
  return help === undefined ? argv : [help];
}

async function done(command: Promise<void>): Promise<number> {
  await command;
  return 0;
}

/** Returns every command with its summary, a line each. */
export function commandList(): string {
  const width = Math.max(...COMMANDS.map(({ usage }) => usage.length));
  const lines = COMMANDS.map(({ usage, summary }) => `  pointsman ${usage.padEnd(width)}  ${summary}`);
  return `pointsman: an endpoint picker for LLM inference gateways

${lines.join('\n')}

  pointsman <command> --help  the options of a command
  pointsman --version         version of the program and of Node.js
`;
}
