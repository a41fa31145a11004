/** Packages that every start loads and that can be bundled into the program, and those of the page. NOTICE carries their licences. */
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
