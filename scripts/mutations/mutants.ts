// Mutants of a compiled module: small changes that a test should notice.
import { type Node, parse } from 'acorn';

export type MutationKind = 'comparison' | 'boundary' | 'boolean' | 'arithmetic' | 'statement' | 'return';

/** One change of a module's text. */
export interface Mutant {
  readonly kind: MutationKind;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** Line of the compiled module, from 1. */
  readonly line: number;
  /** Text of the first changed line before and after the change, without the space around it. */
  readonly before: string;
  readonly after: string;
}

/** A node with the fields that mutations look at; which ones it has depends on its type. */
interface Syntax extends Node {
  readonly operator?: string;
  readonly left?: Syntax;
  readonly right?: Syntax;
  readonly argument?: Syntax | null;
  readonly expression?: Syntax;
  readonly test?: Syntax | null;
  readonly value?: unknown;
  readonly prefix?: boolean;
}

/** Another comparison, which differs in more than the bound. */
export const COMPARISONS: Readonly<Record<string, string>> = {
  '===': '!==',
  '!==': '===',
  '<': '>=',
  '<=': '>',
  '>': '<=',
  '>=': '<',
};
/** The same comparison with the bound on the other side. */
export const BOUNDARIES: Readonly<Record<string, string>> = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' };
export const LOGIC: Readonly<Record<string, string>> = { '&&': '||', '||': '&&' };
export const ARITHMETIC: Readonly<Record<string, string>> = { '+': '-', '-': '+', '*': '/', '/': '*', '%': '*' };
export const ASSIGNMENTS: Readonly<Record<string, string>> = { '+=': '-=', '-=': '+=', '*=': '/=', '/=': '*=' };

/** Statements that do something and can be left out without an error of syntax. */
const REMOVABLE = new Set(['CallExpression', 'AssignmentExpression', 'UpdateExpression', 'AwaitExpression']);

/** One change, as the characters that are replaced. */
export type Change = readonly [kind: MutationKind, start: number, end: number, replacement: string];

/** All mutants of a module, in the order of its text. @throws SyntaxError when it is no module */
export function mutantsOf(text: string): Mutant[] {
  const changes: Change[] = [];
  visit(parse(text, { ecmaVersion: 'latest', sourceType: 'module' }), (node) => {
    changes.push(...changesOf(node, text));
  });
  changes.sort((a, b) => a[1] - b[1] || a[2] - b[2]);
  return changes.map((change) => mutantOf(text, change));
}

/** The module's text with the mutant's change. */
export function applied(text: string, { start, end, replacement }: Pick<Mutant, 'start' | 'end' | 'replacement'>) {
  return text.slice(0, start) + replacement + text.slice(end);
}

/** A change as a mutant of a text. */
export function mutantOf(text: string, [kind, start, end, replacement]: Change): Mutant {
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  const lineAt = (whole: string) => whole.slice(lineStart).split('\n', 1)[0]!.trim();
  const change = { start, end, replacement };
  const line = text.slice(0, lineStart).split('\n').length;
  return { ...change, kind, line, before: lineAt(text), after: lineAt(applied(text, change)) };
}

function changesOf(node: Syntax, text: string): Change[] {
  switch (node.type) {
    case 'BinaryExpression':
      return operatorChanges(node, text, [
        ['comparison', COMPARISONS],
        ['boundary', BOUNDARIES],
        ...(isText(node) ? [] : [['arithmetic', ARITHMETIC] as const]),
      ]);
    case 'LogicalExpression':
      return operatorChanges(node, text, [['boolean', LOGIC]]);
    case 'AssignmentExpression':
      return isText(node) ? [] : operatorChanges(node, text, [['arithmetic', ASSIGNMENTS]]);
    case 'UnaryExpression':
      return node.operator === '!' ? [['boolean', node.start, node.argument!.start, '']] : [];
    case 'Literal':
      return typeof node.value === 'boolean' ? [['boolean', node.start, node.end, String(!node.value)]] : [];
    case 'IfStatement':
      return [['boolean', node.test!.start, node.test!.end, 'false']];
    case 'ExpressionStatement':
      return REMOVABLE.has(node.expression!.type) ? [['statement', node.start, node.end, ';']] : [];
    case 'ReturnStatement':
      return returnChanges(node, text);
    default:
      return [];
  }
}

function operatorChanges(
  { operator, left, right }: Syntax,
  text: string,
  tables: readonly (readonly [MutationKind, Readonly<Record<string, string>>])[],
): Change[] {
  const between = text.slice(left!.end, right!.start);
  const start = left!.end + between.indexOf(operator!);
  return tables.flatMap(([kind, table]) => {
    const other = table[operator!];
    return other === undefined ? [] : [[kind, start, start + operator!.length, other] as const];
  });
}

/** A sum with a text joins it; it is no arithmetic. */
function isText({ operator = '', left, right }: Syntax): boolean {
  const joins = (side: Syntax): boolean =>
    side.type === 'TemplateLiteral' ||
    (side.type === 'Literal' && typeof side.value === 'string') ||
    (side.type === 'BinaryExpression' && isText(side));
  return operator.startsWith('+') && (joins(left!) || joins(right!));
}

function returnChanges({ argument }: Syntax, text: string): Change[] {
  if (!argument || /^(undefined|true|false|null|-?\d+)$/.test(text.slice(argument.start, argument.end))) return [];
  return [['return', argument.start, argument.end, 'undefined']];
}

/** Calls back for a node and all nodes below it, in order. */
function visit(node: Syntax, seen: (node: Syntax) => void): void {
  seen(node);
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child === 'object' && child !== null && 'type' in child && 'start' in child) visit(child, seen);
    }
  }
}
