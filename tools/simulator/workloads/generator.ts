import type { z } from 'zod';
import type { RandomStream } from '../fleet/random-stream.js';
import type { Session } from '../fleet/workload.js';
import type { ContentIds, GrowingText } from './text.js';

/** Inputs of a generator. */
export interface GeneratorContext {
  /** Length of the traffic. */
  readonly seconds: number;
  readonly blockTokens: number;
  readonly ids: ContentIds;
  readonly random: RandomStream;
  /** An empty text. */
  text(): GrowingText;
  /** Reads a file that the suite names; throws Error with the path when it cannot be read. */
  read(path: string): string;
}

/** One kind of traffic: its parameters, and the function that makes it from them. */
export interface WorkloadKind<Parameters = never> {
  readonly kind: string;
  readonly doc: string;
  readonly parameters: z.ZodObject;
  /** Place where its traces are published; undefined = nowhere. */
  readonly source?: string;
  /** Sessions by rising start, all of part 0. Equal context, equal sessions. */
  generate(parameters: Parameters, context: GeneratorContext): Session[];
}

/** Checks a kind's function against its schema and forgets the type of the parameters. */
export function defineWorkload<Schema extends z.ZodObject>(
  definition: Omit<WorkloadKind<z.output<Schema>>, 'parameters'> & { readonly parameters: Schema },
): WorkloadKind {
  return definition as unknown as WorkloadKind;
}
