import { Command, InvalidArgumentError } from 'commander';
import { KEPT_BY } from '../../src/contract/kept-columns.js';
import type { RequestStory } from '../../src/operations/why/request-story.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { askPicker, type PickerAddressFlags, tellPicker, withPickerAddress } from '../command-line/picker-pages.js';
import { whyText } from './why-text.js';

interface WhyFlags extends PickerAddressFlags {
  readonly json: boolean;
  /** Requests whose decisions will keep their columns. */
  readonly keep?: KeptRequests;
  readonly minutes?: number;
}

interface KeptRequests {
  readonly by: string;
  readonly value: string;
}

/**
 * `pointsman why`: why a request went where it went; or which requests keep the scores of their decisions for a while.
 * @returns the exit code: 1 when the picker knows no such request, or keeps nothing
 */
export async function runWhy(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<WhyFlags>(whyCommand(), argv);
  if (parsed === undefined) return 0;
  const { args, options: flags } = parsed;
  if (flags.keep !== undefined) return keep(flags, flags.keep);
  if (args[0] === undefined) throw new Error('name the request, as in pointsman why X-REQUEST-ID, or give --keep');
  const answer = await askPicker(flags, `/debug/requests/${encodeURIComponent(args[0])}`);
  const text = await answer.text();
  if (!answer.ok) {
    process.stderr.write(`pointsman why: ${answer.status}: ${text.trim()}\n`);
    return 1;
  }
  process.stdout.write(flags.json ? text : whyText(JSON.parse(text) as RequestStory));
  return 0;
}

async function keep(flags: WhyFlags, { by, value }: KeptRequests): Promise<number> {
  const query = new URLSearchParams({ [by]: value });
  if (flags.minutes !== undefined) query.set('minutes', String(flags.minutes));
  const answer = await tellPicker(flags, `/debug/columns?${query}`);
  const text = await answer.text();
  if (!answer.ok) {
    process.stderr.write(`pointsman why: ${answer.status}: ${text.trim()}\n`);
    return 1;
  }
  const { kept } = JSON.parse(text) as { readonly kept: readonly Readonly<Record<string, string | number>>[] };
  process.stdout.write(flags.json ? text : keptText(kept));
  return 0;
}

function keptText(kept: readonly Readonly<Record<string, string | number>>[]): string {
  if (kept.length === 0) return 'no columns are kept on request\n';
  const lines = kept.map((each) => {
    const by = KEPT_BY.find((name) => each[name] !== undefined)!;
    return (
      `every decision about ${by} ${each[by]} keeps its scores for ${each.secondsLeft} s, at most ` +
      `${each.decisionsOfEachShard} of each shard\n`
    );
  });
  return lines.join('');
}

function whyCommand(): Command {
  return withPickerAddress(new Command('pointsman why'))
    .description('Why a request went where it went: candidates, filters, scores, charge, wait and result.')
    .argument('[id]', 'x-request-id of the request, or the id of a decision')
    .option('--json', 'print the page as JSON', false)
    .option('--keep <requests>', 'keep the scores of tenant=NAME, model=NAME or session=ID from now on', keptRequests)
    .option('--minutes <count>', 'how long, 1 to 60; 0 = no longer (default: 5)', minutes)
    .addHelpText('after', '\nExit code: 0 when the request was found, or its scores are kept; 1 otherwise.\n');
}

function keptRequests(text: string): KeptRequests {
  const [, by, value] = /^([a-z]+)=(.+)$/.exec(text) ?? [];
  if (!KEPT_BY.some((each) => each === by) || value === undefined)
    throw new InvalidArgumentError(`expected one of ${KEPT_BY.map((each) => `${each}=…`).join(', ')}`);
  return { by: by!, value };
}

function minutes(text: string): number {
  const count = Number(text);
  if (text === '' || !Number.isInteger(count) || count < 0 || count > 60)
    throw new InvalidArgumentError('expected a whole number from 0 to 60');
  return count;
}
