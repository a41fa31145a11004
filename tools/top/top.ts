import { Command } from 'commander';
import type { Snapshot } from '../../src/operations/page/snapshot.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { openPicker, type PickerAddressFlags, withPickerAddress } from '../command-line/picker-pages.js';
import { topText } from './top-text.js';

const NO_PAGE = 'it serves no page: start it without --ui=false';
/** Lines of a terminal that does not report its height. */
const ROWS = 40;
/** Moves to the top left and clears what is below. */
const CLEAR = '\x1b[H\x1b[J';

/** `pointsman top`: what the page shows, in a terminal, until Ctrl-C. @returns the exit code */
export async function runTop(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<PickerAddressFlags & { readonly once: boolean }>(topCommand(), argv);
  if (parsed === undefined) return 0;
  const { options } = parsed;
  const answer = await openPicker(options, '/ui/events');
  if (!answer.ok || answer.body === null) {
    const reason = answer.status === 404 ? NO_PAGE : await answer.text();
    throw new Error(`${options.picker.origin}: ${answer.status}: ${reason.trim()}`);
  }
  for await (const snapshot of snapshots(answer.body)) {
    const text = topText(snapshot, process.stdout.rows ?? ROWS);
    process.stdout.write(options.once || !process.stdout.isTTY ? `${text}\n` : `${CLEAR}${text}\n`);
    if (options.once) return 0;
  }
  throw new Error(`${options.picker.origin}: the picker has ended the stream`);
}

/** The snapshots of a stream of server-sent events. */
async function* snapshots(body: AsyncIterable<Uint8Array>): AsyncGenerator<Snapshot> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of body) {
    const events = (rest + decoder.decode(piece, { stream: true })).split('\n\n');
    rest = events.pop()!;
    for (const event of events)
      if (event.startsWith('data: ')) yield JSON.parse(event.slice('data: '.length)) as Snapshot;
  }
}

function topCommand(): Command {
  return withPickerAddress(new Command('pointsman top'))
    .description('Endpoints, traffic, cache and last decisions of a running picker, once a second.')
    .option('--once', 'print one snapshot and end', false);
}
