// The last step of `npm run build`: the compiled code of the program that was built.
import { fileURLToPath } from 'node:url';
import { keepCompiledCode } from './compiled-code.ts';

await keepCompiledCode(fileURLToPath(new URL('..', import.meta.url)));
