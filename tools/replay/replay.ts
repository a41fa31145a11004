import { writeFileSync } from 'node:fs';
import { Command } from 'commander';
import { candidateRefusals } from '../../src/config/candidate.js';
import { ConfigurationDocument } from '../../src/config/document.js';
import { type LoadedConfiguration, type LoadOptions, loadConfiguration, loadDocument } from '../../src/config/load.js';
import { CORE } from '../../src/core/core-names.js';
import { type Recording, readRecording } from '../../src/operations/recording/recording-reader.js';
import { errorMessage } from '../../src/runtime/error-message.js';
import { readPlainFileSync } from '../../src/runtime/plain-file.js';
import { readProblem } from '../../src/runtime/read-problem.js';
import { pluginRegistry, repeated } from '../../src/serve/plugin-registry.js';
import { parsedCommand } from '../command-line/parsed-command.js';
import { replay } from './comparison.js';
import { replayText } from './replay-text.js';

/** Twice the bytes of the longest recording. */
const RECORDING_BYTES_MAX = 512 * 2 ** 20;

/** Output tokens of a request whose engine did not count them, from other requests of the recording. */
function usualOutput(recording: Recording): number {
  const known = [...recording.ends.values()].flatMap(({ outputTokens }) => outputTokens ?? []).sort((a, b) => a - b);
  return Math.max(1, known[known.length >> 1] ?? 1);
}

/**
 * The recording as a trace of `pointsman simulate` (workload `jsonl`), one line for each request: block ids stand for
 * the blocks of its prompt. A request with several profiles has one line.
 */
function traceOf(recording: Recording): string {
  const usual = usualOutput(recording);
  const first = Math.min(...recording.decisions.map(({ timeMs }) => timeMs));
  const ids = new Map<bigint, number>();
  const lines = recording.decisions
    .filter(({ flags }) => (flags & CORE.DECIDE_FURTHER) === 0)
    .sort((a, b) => a.timeMs - b.timeMs)
    .map(({ timeMs, thread, number, promptTokens, blocks, hashes }) => {
      const blockIds = Array.from({ length: blocks }, (_, i) => {
        const hash = hashes.readBigUInt64LE(8 * i);
        const id = ids.get(hash) ?? ids.size;
        ids.set(hash, id);
        return id;
      });
      const end = recording.ends.get(`${thread}.${number}`);
      return JSON.stringify({
        timestamp_ms: Math.round((timeMs - first) * 1000) / 1000,
        prompt_tokens: Math.max(1, end?.promptTokens ?? promptTokens, promptTokens),
        output_tokens: Math.max(1, end?.outputTokens ?? usual),
        block_ids: blockIds,
      });
    });
  return `${lines.join('\n')}\n`;
}

interface ReplayFlags {
  readonly config?: string;
  readonly trace?: string;
  readonly json: boolean;
  readonly plugin: readonly string[];
}

/** `pointsman replay`: picks of another configuration for recorded decisions. @returns the exit code */
export async function runReplay(argv: readonly string[]): Promise<number> {
  const parsed = parsedCommand<ReplayFlags>(replayCommand(), argv);
  if (parsed === undefined) return 0;
  const { args, options: flags } = parsed;
  const recording = recordingOf(args[0]!);
  if (flags.config === undefined && flags.trace === undefined)
    throw new Error('--config or --trace: give at least one');
  if (flags.trace !== undefined) writeFileSync(flags.trace, traceOf(recording));
  if (flags.config === undefined) return 0;
  const { registry } = await pluginRegistry(flags.plugin);
  const load: LoadOptions = { registry, allowExperimental: recording.header.allowExperimental };
  const { configuration: text } = recording.header;
  const recorded = loadDocument(ConfigurationDocument.ofFile(text, `${args[0]!} (configuration)`), load);
  const other = loadConfiguration({ file: flags.config }, load);
  refuse(recording, recorded, other, flags.config);
  const result = replay(recording, recorded, other);
  process.stdout.write(flags.json ? `${JSON.stringify(result, null, 2)}\n` : replayText(recording, result));
  return 0;
}

function replayCommand(): Command {
  return new Command('pointsman replay')
    .description('What another configuration would have picked for recorded decisions, and its predicted worth.')
    .argument('<recording>', 'file of POST /debug/recording')
    .option('--config <file>', 'the other configuration')
    .option('--trace <file>', 'write the requests as a trace for pointsman simulate (workload jsonl)')
    .option('--plugin <module>', 'as the flag of pointsman serve; may be repeated', repeated, [])
    .option('--json', 'print one JSON document', false);
}

function recordingOf(path: string): Recording {
  let file: Buffer;
  try {
    file = readPlainFileSync(path, RECORDING_BYTES_MAX);
  } catch (error) {
    throw new Error(`${path}: ${readProblem(error)}`);
  }
  try {
    const recording = readRecording(file);
    if (recording.decisions.length === 0) throw new Error('no request was decided while it was made');
    return recording;
  } catch (error) {
    throw new Error(`${path}: ${errorMessage(error)}`);
  }
}

/** @throws with the reason why decisions of the recording cannot be made again by these configurations */
function refuse(recording: Recording, recorded: LoadedConfiguration, other: LoadedConfiguration, path: string): void {
  const { layout, version } = recording.header;
  if (layout !== CORE.LAYOUT_VERSION) {
    throw new Error(
      `it was recorded by version ${version}, whose states this version cannot read: replay it with that one`,
    );
  }
  const refusals = candidateRefusals(recorded, other);
  if (refusals.length > 0) throw new Error(`${path} cannot decide on this recording: ${refusals.join('; ')}`);
}
