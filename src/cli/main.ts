import { errorMessage } from '../core/error-message.js';

const USAGE = `pointsman - an endpoint picker for LLM inference gateways

  pointsman [serve] [flags]   answer ext_proc requests (the default; the flags are llm-d-router's)
  pointsman demo              picker, gateway, simulated model servers and a short load, all on this machine
  pointsman lint <file>       errors and warnings of a configuration, and the program it makes
  pointsman preflight         what a picker would serve from its cluster, and which rights are missing
  pointsman explain <file>    scores, filters and pick for one request, without a pool
  pointsman why <id>          why a request went where it went, asked of a running picker
  pointsman schema            JSON Schema of configurations, for editors
  pointsman weights export    what was learned about costs, as a configuration
  pointsman simulate <suite>  policies against each other on a simulated fleet
  pointsman gateway           a small HTTP proxy that asks a picker, for development
  pointsman <command> --help  the command's flags
`;

/** Run the command line. Errors end with one line on standard error and exit code 1. */
export async function main(argv: readonly string[]): Promise<void> {
  exitWithParent();
  const [first, ...rest] = argv;
  try {
    if (first === 'demo') process.exitCode = await (await import('./demo.js')).runDemo(rest);
    else if (first === 'gateway') await (await import('./gateway.js')).runGateway(rest);
    else if (first === 'preflight' || (first === 'lint' && rest.includes('--kubernetes'))) {
      const flags = rest.filter((argument) => argument !== '--kubernetes');
      process.exitCode = await (await import('./preflight.js')).runPreflight(flags);
    } else if (first === 'lint') process.exitCode = await (await import('./lint.js')).runLint(rest);
    else if (first === 'explain') process.exitCode = await (await import('./explain.js')).runExplain(rest);
    else if (first === 'why') process.exitCode = await (await import('./why.js')).runWhy(rest);
    else if (first === 'weights') await (await import('./weights.js')).runWeights(rest);
    else if (first === 'simulate') process.exitCode = await (await import('./simulate.js')).runSimulate(rest);
    else if (first === 'schema') await (await import('./schema.js')).runSchema(rest);
    else if (first === 'serve') await (await import('./serve.js')).runServe(rest);
    else if (first === 'help') process.stdout.write(USAGE);
    else if (first === undefined || first.startsWith('-')) await (await import('./serve.js')).runServe([...argv]);
    else
      throw new Error(
        `unknown command "${first}": use serve, demo, lint, preflight, explain, why, schema, simulate, weights or gateway`,
      );
  } catch (error) {
    const message = errorMessage(error);
    process.stderr.write(`pointsman: ${message.trim().replaceAll(/\s*\n\s*/g, ' ')}\n`);
    process.exit(1);
  }
}

/** Started by the launcher on behalf of an older Node.js: when that process is gone, so are we. */
function exitWithParent(): void {
  if (process.env.POINTSMAN_PARENT !== '1' || process.channel === undefined) return;
  process.on('disconnect', () => process.exit(1));
  process.channel?.unref();
}
