/** Packages that every start loads and that can be bundled into the program. NOTICE carries their licences. */
export const bundledPackages = ['@grpc/grpc-js', 'commander', 'pino', 'prom-client', 'undici', 'yaml', 'zod'];
