// Exports, nothing else: what src/, tools/, test/ and bench/ use. `npm run build:wasm` writes them to
// src/core/core-names.ts.

export * from './exports/gate';
export * from './exports/load';
export * from './exports/memory';
export * from './exports/prefix';
export * from './exports/request';
export * from './exports/response';
export * from './exports/scheduling';
export * from './exports/scrape';
export * from './exports/sessions';
