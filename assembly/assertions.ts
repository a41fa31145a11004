// Assertions of the debug build (dist/src/core/core-debug.wasm).
//
// Owns nothing. Written as `if (ASSERTIONS) assert(condition, 'what must hold')`: the release build compiles neither
// the condition nor the text, so it holds no static data. The debug build keeps its texts below the header page, which
// nothing else uses; every instantiation writes the same bytes there. A failed assertion throws in TypeScript, with
// file and line.

/** True in the debug build. */
export const ASSERTIONS: bool = !ASC_NO_ASSERT;
