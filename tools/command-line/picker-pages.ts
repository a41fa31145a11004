import { type Command, InvalidArgumentError } from 'commander';
import { NO_SUCH_POOL } from '../../src/operations/debug-pages.js';
import { errorMessage } from '../../src/runtime/error-message.js';
import { readPlainText, SECRET_BYTES_MAX } from '../../src/runtime/plain-file.js';
import { readProblem } from '../../src/runtime/read-problem.js';
import { FlagError } from '../../src/serve/flag-error.js';

/** Flags of commands that read the metrics port of a running picker. */
export interface PickerAddressFlags {
  readonly picker: URL;
  readonly tokenFile?: string;
  readonly pool?: string;
}

/** Adds the flags that say where the picker is. */
export function withPickerAddress(command: Command): Command {
  return command
    .option('--picker <url>', "the picker's metrics port", pickerUrl, new URL('http://127.0.0.1:9090'))
    .option('--token-file <file>', 'file with the bearer token, when the port asks for one')
    .option('--pool <name>', 'the pool to ask about, of a picker that serves several');
}

function pickerUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new InvalidArgumentError('expected a URL, as in http://127.0.0.1:9090');
  }
  return url;
}

const ANSWER_TIMEOUT_MS = 10_000;

/**
 * Asks the picker for a page.
 * @throws {Error} one line: no picker answers there, or the token file cannot be read
 */
export function askPicker(flags: PickerAddressFlags, path: string): Promise<Response> {
  return request(flags, path, AbortSignal.timeout(ANSWER_TIMEOUT_MS));
}

/** As `askPicker`, for a page with an effect. */
export function tellPicker(flags: PickerAddressFlags, path: string): Promise<Response> {
  return request(flags, path, AbortSignal.timeout(ANSWER_TIMEOUT_MS), 'POST');
}

/** As `askPicker`, for a page that does not end. */
export function openPicker(flags: PickerAddressFlags, path: string): Promise<Response> {
  return request(flags, path, undefined);
}

async function request(
  flags: PickerAddressFlags,
  path: string,
  signal: AbortSignal | undefined,
  method: 'GET' | 'POST' = 'GET',
): Promise<Response> {
  const { picker, tokenFile, pool } = flags;
  const headers: Record<string, string> = {};
  const url = new URL(path, picker);
  if (pool !== undefined) url.searchParams.set('pool', pool);
  if (tokenFile !== undefined) headers.authorization = `Bearer ${readToken(tokenFile)}`;
  const asked = fetch(url, { method, headers, ...(signal === undefined ? {} : { signal }) });
  const answer = await asked.catch((error: unknown) => {
    const cause = (error as { cause?: unknown }).cause ?? error;
    throw new Error(`no picker answers on ${picker.origin}: ${errorMessage(cause)}; --picker names its metrics port`);
  });
  await refuseOtherPool(answer, flags);
  return answer;
}

/** @throws when the picker has no pool of that name, which every page would answer */
async function refuseOtherPool(answer: Response, { picker, pool }: PickerAddressFlags): Promise<void> {
  if (pool === undefined || answer.status !== 404) return;
  const text = await answer.clone().text();
  if (text.startsWith(NO_SUCH_POOL)) throw new FlagError(`--pool: ${text.trim()} on ${picker.origin}`);
}

function readToken(path: string): string {
  try {
    return readPlainText(path, SECRET_BYTES_MAX).trim();
  } catch (error) {
    throw new Error(`--token-file: ${path} ${readProblem(error)}`);
  }
}
