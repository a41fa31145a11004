import { errorMessage } from '../runtime/error-message.js';

/**
 * Runs the program. Errors end with one line on standard error and exit code 1.
 * @param run resolves to the exit code
 */
export async function runProgram(run: () => Promise<number>): Promise<void> {
  exitWithParent();
  endWithReader();
  try {
    process.exitCode = await run();
  } catch (error) {
    const message = errorMessage(error);
    process.stderr.write(`pointsman: ${message.trim().replaceAll(/\s*\n\s*/g, ' ')}\n`);
    process.exit(1);
  }
}

/** Ends this process quietly when the reader of its output has enough, as with `| head`. */
function endWithReader(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
}

/** Ends this process with the launcher that started it on behalf of an older Node.js. */
function exitWithParent(): void {
  if (process.env.POINTSMAN_PARENT !== '1' || process.channel === undefined) return;
  process.on('disconnect', () => process.exit(1));
  process.channel?.unref();
}
