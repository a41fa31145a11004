// The last step of `npm run build`: the compiled code of the program that was built. Without it the program is the
// same, and its starts take twice the CPU time: the build does not fail where no picker can be run.
import { fileURLToPath } from 'node:url';
import { errorMessage } from '../src/runtime/error-message.ts';
import { keepCompiledCode } from './compiled-code.ts';

try {
  await keepCompiledCode(fileURLToPath(new URL('..', import.meta.url)));
} catch (error) {
  console.warn(`build: starts take longer: ${errorMessage(error)}`);
}
