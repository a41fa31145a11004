import { stripTypeScriptTypes } from 'node:module';
import { type AnyNode, type Expression, type Function as FunctionNode, parse, type SpreadElement } from 'acorn';

/** Views over shared memory that have these names everywhere in src/core. */
const VIEWS = new Set(['u32', 'i32', 'f32', 'f64', 'bytes']);
/** Sizes of the elements of those views in bytes: factors that are no copy of a layout. */
const ELEMENT_BYTES = new Set([1, 4, 8]);
/** Arguments of a method of a view that are positions in it. */
const POSITIONS: Readonly<Record<string, readonly number[]>> = {
  set: [1],
  fill: [1, 2],
  slice: [0, 1],
  subarray: [0, 1],
};

/**
 * Numbers written as such in an address of shared memory, as in `view.getUint32(at + 8, true)`, each with its line.
 * Also found where another statement or a function of the file makes the sum, or a caller passes it to one. A name
 * stands for the same thing in the whole file.
 * @param source text of a module of src/core
 */
export function literalOffsets(source: string): string[] {
  const root = parse(stripTypeScriptTypes(source), { ecmaVersion: 'latest', sourceType: 'module', locations: true });
  const nodes = [...nodesOf(root)];
  const search = new AddressSearch(nodes);
  for (const node of nodes) for (const address of addressesOf(node, search.views)) search.look(address);
  search.follow();
  const lines = source.split('\n');
  return [...search.found].sort((a, b) => a - b).map((line) => `${line}: ${lines[line - 1]!.trim()}`);
}

/** Finds the numbers in addresses, and the names from which addresses are made. */
class AddressSearch {
  /** Lines with a number in an address. */
  readonly found = new Set<number>();
  readonly views: ReadonlySet<string>;
  readonly #nodes: readonly AnyNode[];
  readonly #names = new Set<string>();
  readonly #functions: ReadonlyMap<string, FunctionNode>;
  /** Names of variables that count. */
  readonly #counters: ReadonlySet<string>;

  constructor(nodes: readonly AnyNode[]) {
    this.#nodes = nodes;
    this.views = new Set([...VIEWS, ...nodes.flatMap(viewMade)]);
    this.#functions = new Map(nodes.flatMap(functionMade));
    this.#counters = new Set(
      nodes.flatMap((node) => (node.type === 'UpdateExpression' ? [placeOf(node.argument) ?? ''] : [])),
    );
  }

  /** Looks at an expression that is an address, or a part of a sum that is one. */
  look(node: Expression | SpreadElement | AnyNode | null | undefined): void {
    if (node === null || node === undefined) return;
    if (node.type === 'Literal') {
      if (typeof node.value === 'number' && node.value !== 0) this.found.add(node.loc!.start.line);
    } else if (node.type === 'BinaryExpression') this.#lookAtOperation(node.operator, node.left, node.right);
    else if (node.type === 'ConditionalExpression') {
      this.look(node.consequent);
      this.look(node.alternate);
    } else if (node.type === 'CallExpression') this.#names.add(placeOf(node.callee) ?? '');
    else this.#names.add(placeOf(node) ?? '');
  }

  #lookAtOperation(operator: string, left: AnyNode, right: AnyNode): void {
    if (operator === '+' || operator === '-') {
      this.look(left);
      this.look(right);
    } else if (operator === '*') {
      for (const side of [left, right]) if (!isElementSize(side)) this.#lookAtFactor(side);
    } else this.look(left);
  }

  /** A number of elements is no address, but the bytes of one that are written as a number are a copy. */
  #lookAtFactor(node: AnyNode): void {
    if (node.type === 'Literal') this.look(node);
  }

  /** Looks at what the names stand for that addresses are made from, until there is none that is new. */
  follow(): void {
    for (let size = -1; size !== this.#names.size; ) {
      size = this.#names.size;
      for (const node of this.#nodes) this.#followNode(node);
      for (const [name, made] of this.#functions) if (this.#names.has(name)) this.#followResults(made);
    }
  }

  #followNode(node: AnyNode): void {
    if (node.type === 'VariableDeclarator' && this.#isFollowed(node.id)) this.look(node.init);
    if (node.type === 'PropertyDefinition' && this.#names.has(`this.${nameOf(node.key)}`)) this.look(node.value);
    if (node.type === 'AssignmentExpression' && this.#isFollowed(node.left)) this.look(node.right);
    if (node.type !== 'CallExpression') return;
    for (const [i, parameter] of (this.#functions.get(placeOf(node.callee) ?? '')?.params ?? []).entries())
      if (this.#isFollowed(parameter)) this.look(node.arguments[i]);
  }

  #followResults(made: FunctionNode): void {
    if (made.body.type !== 'BlockStatement') this.look(made.body);
    for (const node of nodesOf(made.body)) if (node.type === 'ReturnStatement') this.look(node.argument);
  }

  #isFollowed(node: AnyNode): boolean {
    const name = placeOf(node);
    return name !== undefined && this.#names.has(name) && !this.#counters.has(name);
  }
}

function* nodesOf(node: AnyNode): Generator<AnyNode> {
  yield node;
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? value : [value])
      if (typeof child?.type === 'string') yield* nodesOf(child);
}

/** Name of a variable, a function of the file, or a field or method of the object itself with `this.` before it. */
function placeOf(node: AnyNode): string | undefined {
  if (node.type === 'Identifier') return node.name;
  return node.type === 'MemberExpression' && node.object.type === 'ThisExpression' ? `this.${nameOf(node)}` : undefined;
}

/** Name of a variable, or of the property of an object. */
function nameOf(node: AnyNode): string | undefined {
  if (node.type === 'Identifier') return node.name;
  if (node.type === 'PrivateIdentifier') return `#${node.name}`;
  return node.type === 'MemberExpression' && !node.computed ? nameOf(node.property) : undefined;
}

function isElementSize(node: AnyNode): boolean {
  return node.type === 'Literal' && ELEMENT_BYTES.has(Number(node.value));
}

/** Name of a view over shared memory that a statement makes. */
function viewMade(node: AnyNode): string[] {
  const [target, value] =
    node.type === 'VariableDeclarator'
      ? [node.id, node.init]
      : node.type === 'AssignmentExpression'
        ? [node.left, node.right]
        : [];
  if (value?.type !== 'NewExpression' || !/Array$/.test(nameOf(value.callee) ?? '')) return [];
  const [buffer] = value.arguments;
  return buffer !== undefined && nameOf(buffer) === 'buffer' ? [nameOf(target!)!] : [];
}

/** A function or a method with its name. */
function functionMade(node: AnyNode): [string, FunctionNode][] {
  if (node.type === 'FunctionDeclaration' && node.id !== null) return [[node.id.name, node]];
  if (node.type === 'MethodDefinition') return [[`this.${nameOf(node.key)}`, node.value]];
  if (node.type !== 'VariableDeclarator' || node.id.type !== 'Identifier') return [];
  return node.init?.type === 'ArrowFunctionExpression' ? [[node.id.name, node.init]] : [];
}

/** Expressions that a node uses as positions in shared memory. */
function addressesOf(node: AnyNode, views: ReadonlySet<string>): AnyNode[] {
  if (node.type === 'MemberExpression' && node.computed)
    return views.has(nameOf(node.object) ?? '') ? [node.property] : [];
  if (node.type !== 'CallExpression' || node.callee.type !== 'MemberExpression') return [];
  const object = nameOf(node.callee.object) ?? '';
  const method = nameOf(node.callee.property) ?? '';
  const at = (positions: readonly number[]) => positions.flatMap((i) => node.arguments[i] ?? []);
  if (object === 'view') return at([0]);
  if (object === 'Atomics') return VIEWS.has(nameOf(node.arguments[0]!) ?? '') ? at([1]) : [];
  return views.has(object) ? at(POSITIONS[method] ?? []) : [];
}
