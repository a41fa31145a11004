import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

/** A package that only some configurations use is not installed. The message is one line with the remedy. */
export class MissingPackage extends Error {
  constructor(name: string, use: string) {
    super(`${use} need the package ${name}, which is not installed: run npm install ${name}`);
  }
}

/**
 * Loads an optional dependency when a configuration first uses it.
 * @param use What needs it, in the plural: `KV events`
 * @throws MissingPackage
 */
export function optionalPackage<Module>(name: string, use: string): Module {
  let path: string;
  try {
    path = require.resolve(name);
  } catch {
    throw new MissingPackage(name, use);
  }
  return require(path) as Module;
}
