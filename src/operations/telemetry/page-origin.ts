import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import { hostname } from 'node:os';

/** Names that no stranger can have in the public DNS: RFC 6761, RFC 6762, RFC 8375, and ICANN's `.internal`. */
const PRIVATE_DOMAINS = ['localhost', 'local', 'internal', 'home.arpa', 'svc'];
/** A click on a link or a typed address: the page that led here reads nothing of the answer. */
const NAVIGATION = { mode: 'navigate', dest: 'document' };

/** Answers to every name. */
const ANY_HOST = '*';

/**
 * Returns the reason why a request is refused that another site's page made in a browser; undefined = it is no such
 * request. Browsers set these headers themselves, other programs send neither. `Sec-Fetch-Site` goes before `Origin`:
 * a proxy may have changed `Host`, with which `Origin` is compared.
 * @param hasEffect forms of other sites are refused too
 */
export function crossSiteProblem(headers: IncomingHttpHeaders, hasEffect = false): string | undefined {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined) {
    const { mode, dest } = NAVIGATION;
    const isNavigation = headers['sec-fetch-mode'] === mode && headers['sec-fetch-dest'] === dest;
    if (site === 'same-origin' || site === 'none' || (isNavigation && !hasEffect)) return undefined;
    return `a page of another site asks (sec-fetch-site: ${site})`;
  }
  if (origin === undefined || hostOf(origin) === host?.toLowerCase()) return undefined;
  return 'a page of another site asks (its origin is not this host)';
}

function hostOf(origin: string): string | undefined {
  return URL.canParse(origin) ? new URL(origin).host : undefined;
}

/**
 * Host names of this machine. A page of a stranger can have its own name point to this machine (DNS rebinding): the
 * browser then takes both for one site, and only `Host` tells. Addresses, names without a dot (pods, services,
 * containers), names below domains that are never public, those of the cluster, and the machine's own name need no
 * configuration.
 */
export class HostNames {
  readonly #names: ReadonlySet<string>;
  readonly #domains: readonly string[];

  /**
   * @param names further names; `*` = any
   * @param clusterDomains domains of the cluster's services, such as `svc.cluster.example.org`
   */
  constructor(names: readonly string[], clusterDomains: readonly string[] = []) {
    this.#names = new Set([hostname(), ...names].map(bare));
    this.#domains = [...PRIVATE_DOMAINS, ...clusterDomains.map(bare)];
  }

  /** @param host the header; undefined = none was sent, as no browser does */
  has(host: string | undefined): boolean {
    if (host === undefined || host === '' || this.#names.has(ANY_HOST)) return true;
    const name = bare(host.replace(/:\d*$/, ''));
    if (isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0) return true;
    if (!/^[a-z0-9_.-]+$/.test(name)) return false;
    return !name.includes('.') || this.#names.has(name) || this.#domains.some((domain) => name.endsWith(`.${domain}`));
  }
}

/** Domains of a cluster's services among the search domains of a resolver's configuration. */
export function clusterDomains(resolverConfiguration: string): readonly string[] {
  const searched = [...resolverConfiguration.matchAll(/^search[ \t]+(.*)$/gm)].flatMap(([, list]) =>
    list!.trim().split(/\s+/),
  );
  return searched.filter((domain) => domain.startsWith('svc.'));
}

/** A name in its form for comparison: small letters, without the dot of the root. */
function bare(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}
