import { candidateRefusals } from '../config/candidate.js';
import { ConfigurationDocument } from '../config/document.js';
import { type LoadedConfiguration, type LoadOptions, loadDocument } from '../config/load.js';
import type { PickerOptions } from '../picker/picker-options.js';
import { readUtf8Text, TEXT_BYTES_MAX } from '../runtime/plain-file.js';
import { readProblem } from '../runtime/read-problem.js';

/**
 * The configuration of `--candidate-config`, or of `candidateFile` of a pool; undefined = none.
 * @param place that names the file, for messages
 * @throws one line when it cannot be read, or cannot decide beside the running one
 */
export function candidateOf(
  file: string | undefined,
  running: LoadedConfiguration,
  load: LoadOptions,
  place = '--candidate-config',
): PickerOptions['candidate'] {
  if (file === undefined) return undefined;
  const text = candidateText(file, place);
  const configuration = loadDocument(ConfigurationDocument.ofFile(text, file), load);
  const refusals = candidateRefusals(running, configuration);
  if (refusals.length > 0) {
    throw new Error(`${place}: ${file} cannot decide beside the running configuration: ${refusals.join('; ')}`);
  }
  return { configuration, text, followed: { file, watched: true, load } };
}

function candidateText(file: string, place: string): string {
  try {
    return readUtf8Text(file, TEXT_BYTES_MAX);
  } catch (error) {
    throw new Error(`${place}: ${file} cannot be read: ${readProblem(error)}`);
  }
}
