// The part of the WebAssembly JavaScript API that the core uses: neither TypeScript's ES libraries nor Node's types
// declare it.
declare namespace WebAssembly {
  class Module {
    constructor(bytes: Uint8Array<ArrayBuffer>);
    static exports(module: Module): { readonly name: string; readonly kind: string }[];
    static imports(module: Module): { readonly module: string; readonly name: string; readonly kind: string }[];
  }
  class Memory {
    constructor(descriptor: { initial: number; maximum: number; shared: boolean });
    readonly buffer: SharedArrayBuffer;
  }
  class Global {
    readonly value: number | bigint;
  }
  type Exports = Readonly<Record<string, unknown>>;
  class Instance {
    constructor(module: Module, imports: Record<string, Record<string, unknown>>);
    readonly exports: Exports;
  }
}
