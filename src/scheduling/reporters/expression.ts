import type * as Cel from '@marcbachmann/cel-js';
import { errorMessage } from '../../runtime/error-message.js';
import { optionalPackage } from '../../runtime/optional-package.js';

/** An expression over the usage of an answer. */
export interface UsageExpression {
  /** Type of the result as far as it is known before an answer; `dyn` = unknown. */
  readonly type: string;
  /** @throws when the usage lacks a field of the expression, or types do not fit */
  evaluate(usage: Readonly<Record<string, unknown>>): unknown;
}

let library: typeof Cel | undefined;

/** Loaded when the first expression is compiled, because few configurations have one and loading takes 20 ms. */
function cel(): typeof Cel {
  library ??= optionalPackage<typeof Cel>('@marcbachmann/cel-js', 'expressions over the usage');
  return library;
}

/** Bounds on depth and size of an expression, far above those of a hand-written one. */
const LIMITS = { maxAstNodes: 10_000, maxDepth: 100 };

/**
 * Compiles an expression of the Common Expression Language (github.com/google/cel-spec) whose one variable is `usage`.
 * @throws with one line that names the fault in the text
 */
export function compileExpression(text: string): UsageExpression {
  const { Environment } = cel();
  try {
    const program = new Environment({ limits: LIMITS }).registerVariable('usage', 'dyn').parse(text);
    const { valid, type, error } = program.check();
    if (!valid) throw error;
    return { type: type ?? 'dyn', evaluate: (usage) => program({ usage }) as unknown };
  } catch (error) {
    throw new Error(firstLine(errorMessage(error)));
  }
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0]!;
}
