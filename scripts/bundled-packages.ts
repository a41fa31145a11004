import type { NamedFiles } from './named-files.ts';

/**
 * Packages that every start loads and that can be bundled into the program, and those of the page. NOTICE carries their
 * licences.
 */
export const bundledPackages = [
  '@grpc/grpc-js',
  'commander',
  'pino',
  'piscina',
  'prom-client',
  'undici',
  'uplot',
  'yaml',
  'zod',
];

/** Modules of these packages that name a file beside themselves, and what stands for the name in the bundle. */
export const namedFiles: NamedFiles = {
  'piscina/dist/index.js': { text: "'worker.js'", by: "'piscina-thread.cjs'", file: 'piscina-thread.cjs' },
  'pino/lib/transport.js': { leftOut: "pino's transports are not in the program: it writes its log itself" },
  '@grpc/grpc-js/build/src/channelz.js': { unused: 'the definition of the channelz service, which no server here has' },
  '@grpc/grpc-js/build/src/orca.js': { unused: 'the definition of the ORCA service, which no server here has' },
  'undici/index.js': { unused: 'its own name, for stack traces of fetch()' },
};
