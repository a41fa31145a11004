import { Command } from 'commander';
import type { RequestStory } from '../../src/operations/why/request-story.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { askPicker, type PickerAddressFlags, withPickerAddress } from '../command-line/picker-pages.js';
import { whyText } from './why-text.js';

/**
 * `pointsman why`: why a request went where it went.
 * @returns the exit code: 1 when the picker knows no such request
 */
export async function runWhy(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<PickerAddressFlags & { readonly json: boolean }>(whyCommand(), argv);
  if (parsed === undefined) return 0;
  const { args, options: flags } = parsed;
  const answer = await askPicker(flags, `/debug/requests/${encodeURIComponent(args[0]!)}`);
  const text = await answer.text();
  if (!answer.ok) {
    process.stderr.write(`pointsman why: ${answer.status}: ${text.trim()}\n`);
    return 1;
  }
  process.stdout.write(flags.json ? text : whyText(JSON.parse(text) as RequestStory));
  return 0;
}

function whyCommand(): Command {
  return withPickerAddress(new Command('pointsman why'))
    .description('Why a request went where it went: candidates, filters, scores, charge, wait and result.')
    .argument('<id>', 'x-request-id of the request, or the id of a decision')
    .option('--json', 'print the page as JSON', false)
    .addHelpText('after', '\nExit code: 0 when the request was found, 1 otherwise.\n');
}
