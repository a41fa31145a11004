import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { EngineAnswer } from './vllm.ts';

const FOLDER = fileURLToPath(new URL('recorded', import.meta.url));

/** Line of a recorded stream of events: a message of the engine, or an answer that it gave, in the engine's order. */
export type StreamLine =
  | { readonly kind: 'message'; readonly topic: string; readonly number: number; readonly payload: string }
  | {
      readonly kind: 'answer';
      /** What was done, for the reader. */
      readonly what: string;
      readonly model: string;
      readonly tokens: readonly number[];
      readonly cachedTokens: number;
      readonly promptTokens: number;
    };

/** Prediction beside the engine's own figures, over the requests of one setting. Sums are in tokens. */
export interface PredictionRow {
  readonly setting: string;
  readonly requests: number;
  /** Requests whose cached tokens were predicted to the token. */
  readonly equal: number;
  readonly prompt: number;
  readonly predicted: number;
  readonly cached: number;
  /** Error of the estimated lengths, as a share of the tokens that the engine told; 0 = none was estimated. */
  readonly plainError: number;
  readonly learnedError: number;
}

/** Folders of the recordings that hold a file, by engine and version: `vllm-0.32.0`. */
export function recordedVersions(file: string): readonly string[] {
  return readdirSync(FOLDER)
    .filter((version) => existsSync(`${FOLDER}/${version}/${file}`))
    .sort();
}

/** Whether the run writes what it sees: POINTSMAN_RECORD_ENGINES=1. */
export const records = process.env.POINTSMAN_RECORD_ENGINES === '1';

/** Recording of one version of an engine. Metrics pages are long, and kept compressed. */
export class Recording {
  readonly #folder: string;

  constructor(version: string) {
    this.#folder = `${FOLDER}/${version}`;
  }

  page(name: string): string {
    return gunzipSync(readFileSync(`${this.#folder}/${name}.metrics.gz`)).toString();
  }

  answers(): Readonly<Record<string, EngineAnswer>> {
    return JSON.parse(readFileSync(`${this.#folder}/answers.json`, 'utf8')) as Record<string, EngineAnswer>;
  }

  stream(name: string): readonly StreamLine[] {
    const text = gunzipSync(readFileSync(`${this.#folder}/${name}.events.gz`)).toString();
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as StreamLine);
  }

  predictions(): readonly PredictionRow[] {
    return JSON.parse(readFileSync(`${this.#folder}/predictions.json`, 'utf8')) as PredictionRow[];
  }

  writePredictions(rows: readonly PredictionRow[]): void {
    this.#write('predictions.json', `${JSON.stringify(rows, undefined, 2)}\n`);
  }

  writePage(name: string, page: string): void {
    this.#write(`${name}.metrics.gz`, gzipSync(page, { level: 9 }));
  }

  writeAnswers(answers: Readonly<Record<string, EngineAnswer>>): void {
    this.#write('answers.json', `${JSON.stringify(answers, undefined, 2)}\n`);
  }

  writeStream(name: string, lines: readonly StreamLine[]): void {
    this.#write(`${name}.events.gz`, gzipSync(lines.map((line) => `${JSON.stringify(line)}\n`).join(''), { level: 9 }));
  }

  #write(name: string, content: string | Uint8Array): void {
    if (!records) return;
    mkdirSync(this.#folder, { recursive: true });
    writeFileSync(`${this.#folder}/${name}`, content);
  }
}
