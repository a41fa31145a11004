// Text of src/core/core-names.ts: names, values and types of everything that the built core exports.
//
// Names, parameters and types come from the declarations that the AssemblyScript compiler writes, values from an
// instance of the built module. `npm run build:wasm` (scripts/build-core.ts) writes the file.

/** A parameter or a result in AssemblyScript's own type. */
type CoreType = string;

interface Declarations {
  readonly constants: ReadonlyMap<string, CoreType>;
  readonly functions: readonly CoreFunction[];
}

interface CoreFunction {
  readonly name: string;
  readonly parameters: readonly (readonly [name: string, type: CoreType])[];
  /** `void` when it returns nothing. */
  readonly result: CoreType;
}

const LINE_CHARACTERS_MAX = 120;

const HEAD = `// Made by \`npm run build:wasm\` from the built core and assembly/index.ts; do not edit.

// Types of AssemblyScript as they cross the border: integers of 32 bits come back signed (\`>>>\
 0\` makes them unsigned),
// truth as 0 or 1.`;

/** What stands for a type of AssemblyScript in TypeScript. */
const TYPES: Readonly<Record<CoreType, 'number' | 'bigint' | 'void'>> = {
  bool: 'number',
  f32: 'number',
  f64: 'number',
  i32: 'number',
  i64: 'bigint',
  u32: 'number',
  u64: 'bigint',
  usize: 'number',
  void: 'void',
};

/** Reads the declarations that `asc --bindings raw` writes. @throws when one of them has another shape */
export function readDeclarations(text: string): Declarations {
  const constants = new Map<string, CoreType>();
  const functions: CoreFunction[] = [];
  const pattern = /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s+export (const|function) (\w+)/g;
  for (const [, comment, kind, name] of text.matchAll(pattern)) {
    if (kind === 'const') constants.set(name!, constantType(text, name!));
    else functions.push(coreFunction(name!, comment!));
  }
  return { constants, functions };
}

function constantType(text: string, name: string): CoreType {
  const found = new RegExp(
    `export const ${name}: \\{\\s+/\\*\\* @type \`(\\w+)\` \\*/\\s+get value\\(\\): \\w+\\s+\\}`,
  ).exec(text);
  if (found === null) throw new Error(`assembly exports the variable ${name}: export a function that returns it`);
  return found[1]!;
}

function coreFunction(name: string, comment: string): CoreFunction {
  const parameters = [...comment.matchAll(/@param (\w+) `(.+)`/g)].map(
    ([, parameter, type]) => [parameter!, type!] as const,
  );
  return { name, parameters, result: /@returns `(.+)`/.exec(comment)?.[1] ?? 'void' };
}

/** The text of the file. @throws when the module and the declarations do not agree, or a type has no place in it */
export function coreNames(module: WebAssembly.Module, declarations: string): string {
  const { constants, functions } = readDeclarations(declarations);
  const values = constantValues(module);
  const missing = WebAssembly.Module.exports(module).filter(
    ({ name }) => !constants.has(name) && !functions.some((one) => one.name === name),
  );
  if (missing.length > 0) throw new Error(`no declaration of ${missing.map(({ name }) => name).join(', ')}`);
  const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1);
  const constantLines = [...constants]
    .sort(byName)
    .map(([name, type]) => `  ${name}: ${literal(name, type, values.get(name)!)},`);
  const functionLines = functions
    .map((one) => [one.name, signature(one)] as const)
    .sort(byName)
    .map(([, text]) => text);
  return `${HEAD}
${aliases(functions).join('\n')}

/** Constants that the core exports: offsets, sizes, bounds and codes. */
export const CORE = {
${constantLines.join('\n')}
} as const;

/** Name of a constant. */
export type CoreConstant = keyof typeof CORE;

/** Functions that the core exports. */
export interface CoreFunctions {
${functionLines.join('\n')}
}

/**
 * The same functions in an object of one hidden class for all instances. V8 gives every instance's exports \
a class of its own: an
 * access that has seen 100 of them takes 600 ns, this one 10.
 */
export function uniformCalls(exports: CoreFunctions): CoreFunctions {
  return {
${functions
  .map(({ name }) => `    ${name}: exports.${name},`)
  .sort()
  .join('\n')}
  };
}
`;
}

/** Values of the exported constants as the module tells them. */
export function constantValues(module: WebAssembly.Module): ReadonlyMap<string, number | bigint> {
  const memory = new WebAssembly.Memory({ initial: 2, maximum: 65536, shared: true });
  const { exports } = new WebAssembly.Instance(module, { env: { memory, abort: () => undefined } });
  const globals = Object.entries(exports).filter(
    (entry): entry is [string, WebAssembly.Global] => entry[1] instanceof WebAssembly.Global,
  );
  return new Map(globals.map(([name, { value }]) => [name, value]));
}

function literal(name: string, type: CoreType, value: number | bigint): string {
  if (typeof value === 'bigint') return `${type === 'u64' ? BigInt.asUintN(64, value) : value}n`;
  if (!Number.isFinite(value)) throw new Error(`the constant ${name} is ${value}: export a function that returns it`);
  return String(type === 'u32' || type === 'usize' ? value >>> 0 : value);
}

/** Name of a type in the file, as the linter has names of types. */
function alias(type: CoreType): string {
  return type === 'void' ? type : type.charAt(0).toUpperCase() + type.slice(1);
}

/** Aliases for the types that functions take or return. */
function aliases(functions: readonly CoreFunction[]): string[] {
  const used = new Set(functions.flatMap(({ parameters, result }) => [...parameters.map(([, type]) => type), result]));
  return [...used]
    .filter((type) => type !== 'void')
    .sort()
    .map((type) => `type ${alias(type)} = ${TYPES[type]};`);
}

function signature({ name, parameters, result }: CoreFunction): string {
  for (const type of [...parameters.map(([, type]) => type), result]) {
    if (TYPES[type] === undefined) throw new Error(`${name} takes or returns a ${type}: export a number`);
  }
  const typed = parameters.map(([parameter, type]) => `${parameter}: ${alias(type)}`);
  const line = `  ${name}(${typed.join(', ')}): ${alias(result)};`;
  if (line.length <= LINE_CHARACTERS_MAX) return line;
  return `  ${name}(\n${typed.map((one) => `    ${one},\n`).join('')}  ): ${alias(result)};`;
}
