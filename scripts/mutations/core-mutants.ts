// Mutants of the core's source files, and the functions in them. AssemblyScript's own parser reads them.
import * as assemblyscript from 'assemblyscript';
import {
  type BinaryExpression,
  type ExpressionStatement,
  type FunctionDeclaration,
  type IdentifierExpression,
  type IfStatement,
  type Node,
  newOptions,
  newProgram,
  parse,
  type UnaryPrefixExpression,
} from 'assemblyscript';
import {
  ARITHMETIC,
  ASSIGNMENTS,
  BOUNDARIES,
  type Change,
  COMPARISONS,
  LOGIC,
  type Mutant,
  mutantOf,
} from './mutants.ts';

/** Numbers of the parser; its declarations hold them as constants that other programs cannot read. */
const { NodeKind, Token } = assemblyscript as unknown as Readonly<
  Record<'NodeKind' | 'Token', Readonly<Record<string, number>>>
>;

/** Operators that only the core is full of. */
const BITS: Readonly<Record<string, string>> = { '&': '|', '|': '&', '<<': '>>', '>>': '<<', '>>>': '<<' };
const EQUALITIES: Readonly<Record<string, string>> = { '==': '!=', '!=': '==' };

/** A function with a body, as the place of its brace. */
export interface CoreFunction {
  /** `assembly/load/ledger-entries.ts/takeEntry` */
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/** Functions of a source text, in its order. @param file path from the root of the repository */
export function functionsOf(text: string, file: string): CoreFunction[] {
  const found: CoreFunction[] = [];
  visit(parsed(text, file), (node) => {
    if (node.kind !== NodeKind.FunctionDeclaration && node.kind !== NodeKind.MethodDeclaration) return true;
    const { name, body } = node as FunctionDeclaration;
    if (body !== null && body.kind === NodeKind.Block)
      found.push({ name: `${file}/${name.text}`, start: body.range.start, end: body.range.end });
    return true;
  });
  return found;
}

/**
 * Mutants of the functions of a source text, in its order. Assertions are no behaviour, and a constant is compared with
 * src/core/core-names.ts whenever a core is attached, so both are left out.
 */
export function coreMutantsOf(text: string, file: string): Mutant[] {
  const changes: Change[] = [];
  const functions = functionsOf(text, file);
  visit(parsed(text, file), (node) => {
    if (isAssertion(node)) return false;
    const { start, end } = node.range;
    if (functions.some((own) => own.start < start && end <= own.end)) changes.push(...changesOf(node, text));
    return true;
  });
  changes.sort((a, b) => a[1] - b[1] || a[2] - b[2]);
  return changes.map((change) => mutantOf(text, change));
}

function parsed(text: string, file: string): Node {
  const program = newProgram(newOptions());
  parse(program, text, file, true);
  const source = program.sources.find(({ normalizedPath }) => normalizedPath === file);
  if (source === undefined) throw new Error(`${file}: the parser of AssemblyScript does not read it`);
  return source;
}

function changesOf(node: Node, text: string): Change[] {
  switch (node.kind) {
    case NodeKind.Binary:
      return operatorChanges(node as BinaryExpression, text);
    case NodeKind.UnaryPrefix: {
      const { operator, operand, range } = node as UnaryPrefixExpression;
      return operator === Token.Exclamation ? [['boolean', range.start, operand.range.start, '']] : [];
    }
    case NodeKind.True:
      return [['boolean', node.range.start, node.range.end, 'false']];
    case NodeKind.False:
      return [['boolean', node.range.start, node.range.end, 'true']];
    case NodeKind.If: {
      const { range } = (node as IfStatement).condition;
      return [['boolean', range.start, range.end, 'false']];
    }
    case NodeKind.Expression:
      return isRemovable(node as ExpressionStatement) ? [['statement', node.range.start, node.range.end, '{}']] : [];
    default:
      return [];
  }
}

/** A statement that does something. */
function isRemovable({ expression }: ExpressionStatement): boolean {
  const { kind } = expression;
  return kind === NodeKind.Call || kind === NodeKind.Binary || kind === NodeKind.UnaryPostfix;
}

function operatorChanges({ left, right }: BinaryExpression, text: string): Change[] {
  const between = text.slice(left.range.end, right.range.start);
  const operator = between.match(/[-+*/%<>=!&|]+/)?.[0] ?? '';
  const start = left.range.end + between.indexOf(operator);
  const tables = [
    ['comparison', { ...COMPARISONS, ...EQUALITIES }],
    ['boundary', BOUNDARIES],
    ['boolean', LOGIC],
    ['arithmetic', { ...ARITHMETIC, ...ASSIGNMENTS, ...BITS }],
  ] as const;
  return tables.flatMap(([kind, table]) => {
    const other = Object.hasOwn(table, operator) ? table[operator] : undefined;
    return other === undefined ? [] : [[kind, start, start + operator.length, other] as const];
  });
}

/** `if (ASSERTIONS) assert(…)` */
function isAssertion(node: Node): boolean {
  if (node.kind !== NodeKind.If) return false;
  const { condition } = node as IfStatement;
  return condition.kind === NodeKind.Identifier && (condition as IdentifierExpression).text === 'ASSERTIONS';
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'kind' in value && 'range' in value;
}

/** Calls back for a node and, where it returns true, for the nodes below it, in order. */
function visit(node: Node, seen: (node: Node) => boolean): void {
  if (!seen(node)) return;
  for (const [key, value] of Object.entries(node)) {
    if (key === 'range') continue;
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, seen);
  }
}
