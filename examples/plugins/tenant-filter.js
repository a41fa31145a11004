// A hook filter: a request with the header x-tenant goes only to endpoints with that value of the label `tenant`.
import { definePlugin, z } from 'pointsman/plugin';

const tenantFilter = definePlugin({
  type: 'tenant-filter',
  kinds: ['filter'],
  stability: 'Stable',
  doc: 'Keeps the endpoints of the tenant that the request names; requests without a tenant may use all.',
  parameters: z.strictObject({
    headerName: z.string().default('x-tenant').describe('Header that names the tenant.'),
  }),
  host: ({ headerName }) => ({
    filter(request, endpoints, column) {
      const tenant = request.headers.get(headerName);
      if (tenant === undefined) return;
      for (const slot of endpoints.slots) column[slot] = endpoints.at(slot)?.endpoint.labels.tenant === tenant ? 1 : 0;
    },
  }),
});

export const plugins = [tenantFilter];
