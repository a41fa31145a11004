import { hostname } from 'node:os';
import { describe, expect, it } from 'vitest';
import { clusterDomains, crossSiteProblem, HostNames } from '../../dist/src/operations/telemetry/page-origin.js';

describe('names that the metrics port is asked by', () => {
  it.each([
    ['a scrape of a pod', '10.1.2.3:9090'],
    ['a probe of the kubelet over IPv6', '[fd00::7]:9090'],
    ['a port-forward', 'localhost:9090'],
    ['a port-forward to a name of its own', 'epp.localhost:9090'],
    ['a service in its namespace', 'epp:9090'],
    ['a bare pod name', 'epp-6f7c9-x2x4q:9090'],
    ['a service of a namespace', 'epp.llm.svc:9090'],
    ['a service by its full name', 'epp.llm.svc.cluster.local:9090'],
    ['the same with the dot of the root', 'EPP.llm.svc.cluster.local.:9090'],
    ['a machine of a cloud', 'ip-10-0-0-7.eu-west-1.compute.internal'],
    ['the machine by its own name', `${hostname()}:9090`],
    ['HTTP/1.0 without a host', undefined],
  ])('%s needs no configuration', (_who, host) => {
    expect(new HostNames([]).has(host)).toBe(true);
  });

  it.each([
    'evil.example.com:9090',
    '127.0.0.1.evil.example.com',
    'a.svc.evil.example.com',
    'evil.dev',
    'a@b',
    '[::1].evil.com',
  ])('a public name such as %s is refused', (host) => {
    expect(new HostNames([]).has(host)).toBe(false);
  });

  it('names of a flag are known, with any port, and * knows them all', () => {
    const names = new HostNames(['Picker.example.org']);
    expect([
      names.has('picker.example.org:80'),
      names.has('picker.example.org'),
      names.has('other.example.org'),
    ]).toEqual([true, true, false]);
    expect(new HostNames(['*']).has('evil.example.com')).toBe(true);
  });

  it('services of a cluster with a domain of its own are known by the search domains of the pod', () => {
    const domains = clusterDomains(
      'nameserver 10.0.0.1\nsearch llm.svc.k8s.example.org svc.k8s.example.org example.org\n',
    );
    expect(domains).toEqual(['svc.k8s.example.org']);
    const names = new HostNames([], domains);
    expect([names.has('epp.llm.svc.k8s.example.org:9090'), names.has('epp.example.org')]).toEqual([true, false]);
  });
});

describe('requests of pages', () => {
  const host = '127.0.0.1:9090';

  it('a request of a program has no origin and passes', () => {
    expect(crossSiteProblem({ host })).toBeUndefined();
  });

  it('a request of the own page passes', () => {
    expect(crossSiteProblem({ host, 'sec-fetch-site': 'same-origin', origin: `http://${host}` })).toBeUndefined();
    expect(crossSiteProblem({ host, origin: `http://${host}` })).toBeUndefined();
  });

  it('a request of another site is refused, of a neighbour too', () => {
    for (const site of ['cross-site', 'same-site']) {
      expect(crossSiteProblem({ host, 'sec-fetch-site': site, 'sec-fetch-mode': 'cors' })).toContain(site);
    }
    for (const origin of ['http://evil.example.com', 'null', 'http://127.0.0.1:8080', `http://${host}.evil.com`]) {
      expect(crossSiteProblem({ host, origin })).toContain('another site');
    }
  });

  it('a link on another site leads to the page, whose answer that site cannot read', () => {
    const headers = {
      host,
      'sec-fetch-site': 'cross-site',
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': 'document',
    };
    expect(crossSiteProblem(headers)).toBeUndefined();
    expect(crossSiteProblem({ ...headers, 'sec-fetch-dest': 'iframe' })).toContain('cross-site');
  });
});
