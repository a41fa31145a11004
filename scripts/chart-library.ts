// Copies the charts' library, deploy/charts/router, into the charts that use it, so that nothing is fetched to install one.

import { cpSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const charts = fileURLToPath(new URL('../deploy/charts/', import.meta.url));
for (const chart of ['pointsman-gateway', 'pointsman-standalone']) {
  rmSync(`${charts}${chart}/charts/router`, { recursive: true, force: true });
  cpSync(`${charts}router`, `${charts}${chart}/charts/router`, { recursive: true });
}
