import { X509Certificate } from 'node:crypto';
import type { ListenAddresses, ListenSettings, TlsMaterial } from '../contract/listen-settings.js';
import { readCertificate, selfSignedCertificate } from '../ingress/certificate.js';
import { errorMessage } from '../runtime/error-message.js';
import { PEM_BYTES_MAX, readPlainText } from '../runtime/plain-file.js';
import { AEAD_CIPHERS } from './cipher-suites.js';
import { type Flag, type FlagValues, flag, optionalText, toggle } from './flag.js';
import {
  type FileOwner,
  parseAddress,
  parseChoice,
  parseCipherSuites,
  parseFileMode,
  parseFileOwner,
  parseHostNames,
  parseNetworks,
  parsePort,
  parseSocketPath,
  parseTlsVersion,
} from './flag-values.js';
import { everyAddress } from './port.js';

const PORTS = 'Ports';
const TLS = 'Transport security';

function address(doc: string): Flag<string | undefined> {
  return flag<string | undefined>(PORTS, '<ip>', undefined, undefined, parseAddress, doc);
}

/** Flags of where and how a picker is reached, and by whom, in the order of the help. */
export const LISTEN_FLAGS = {
  'grpc-port': flag(PORTS, '<port>', 9002, '9002', parsePort, 'Port of ext_proc.'),
  'grpc-socket': flag<string | undefined>(
    PORTS,
    '<file>',
    undefined,
    undefined,
    parseSocketPath,
    'Unix domain socket that takes ext_proc as well, in plain text.',
  ),
  'grpc-socket-mode': flag(PORTS, '<mode>', 0o660, '0660', parseFileMode, 'Permissions of --grpc-socket.'),
  'grpc-socket-owner': flag<FileOwner | undefined>(
    PORTS,
    '<uid:gid>',
    undefined,
    undefined,
    parseFileOwner,
    'Owner of --grpc-socket, by numbers.',
  ),
  'grpc-health-port': flag(PORTS, '<port>', 9003, '9003', parsePort, 'Port of gRPC health.'),
  transport: flag(
    PORTS,
    '<name>',
    'lean',
    'lean',
    parseChoice(['lean', 'grpc-js'] as const),
    'What carries ext_proc: lean, or grpc-js, which is slower and compared with.',
  ),
  'metrics-port': flag(PORTS, '<port>', 9090, '9090', parsePort, 'Port of the Prometheus metrics.'),
  'bind-address': address('Address of this machine that all ports are opened on; every address without.'),
  'grpc-bind-address': address('Address of the ext_proc port, in the place of --bind-address.'),
  'grpc-health-bind-address': address('Address of the gRPC health port, in the place of --bind-address.'),
  'metrics-bind-address': address('Address of the metrics port, in the place of --bind-address.'),

  'secure-serving': toggle(TLS, true, 'Serve ext_proc over TLS, self-signed without --cert-path.'),
  'cert-path': optionalText(TLS, '<directory>', 'Directory with tls.crt and tls.key.'),
  'enable-cert-reload': toggle(TLS, false, 'Load the certificate again when its files change.'),
  'client-ca-file': optionalText(TLS, '<file>', 'Clients of ext_proc need a certificate of these CAs.'),
  'trusted-proxies': flag<readonly string[]>(
    TLS,
    '<addresses>',
    [],
    undefined,
    parseNetworks,
    'Addresses and networks (CIDR) of proxies without budgets by address, with commas.',
  ),
  'tls-min-version': flag<'TLSv1.2' | 'TLSv1.3' | undefined>(
    TLS,
    '<version>',
    undefined,
    undefined,
    parseTlsVersion,
    'VersionTLS12 or VersionTLS13.',
  ),
  'tls-cipher-suites': flag<readonly string[]>(
    TLS,
    '<names>',
    [],
    undefined,
    parseCipherSuites,
    'Cipher suites by their Go names, with commas.',
  ),
  'metrics-endpoint-auth': toggle(TLS, true, 'Ask Kubernetes who may read the metrics.'),
  'metrics-auth-token-file': optionalText(
    TLS,
    '<file>',
    'Readers of the metrics port need the token of this file; Kubernetes is not asked.',
  ),
  'metrics-client-ca-file': optionalText(TLS, '<file>', 'Clients of the metrics port need a certificate of these CAs.'),
  'metrics-hosts': flag<readonly string[]>(
    TLS,
    '<names>',
    [],
    undefined,
    parseHostNames,
    'Further host names that the metrics port is asked by, with commas; * = any.',
  ),
  'metrics-cert-dir': optionalText(TLS, '<directory>', 'Directory with tls.crt and tls.key of the metrics port.'),
};

type ListenFlags = FlagValues<typeof LISTEN_FLAGS>;

/**
 * How the flags want the picker to be reached.
 * @param warn told of addresses that are not as the flags have them
 * @throws with one line when a file that they name cannot be used
 */
export async function listenSettings(flags: ListenFlags, warn: (text: string) => void): Promise<ListenSettings> {
  return {
    addresses: listenAddresses(flags, await everyAddress(), warn),
    transport: flags.transport,
    socket: socketFile(flags),
    trustedProxies: flags.trustedProxies,
    grpcPort: flags.grpcPort,
    healthPort: flags.grpcHealthPort,
    metricsPort: flags.metricsPort,
    metricsHosts: flags.metricsHosts,
    metricsTls: metricsTls(flags),
    tls: flags.secureServing ? await servingTls(flags) : undefined,
    certificate: flags.certPath ? { folder: flags.certPath, watched: flags.enableCertReload } : undefined,
  };
}

type AddressFlags = Pick<
  ListenFlags,
  'bindAddress' | 'grpcBindAddress' | 'grpcHealthBindAddress' | 'metricsBindAddress'
>;

/**
 * Addresses of the ports.
 * @param every address of every interface: `::`, or `0.0.0.0` on a machine without IPv6
 * @param warn told of each flag that asks for `::` where there is no IPv6
 */
export function listenAddresses(
  { bindAddress, grpcBindAddress, grpcHealthBindAddress, metricsBindAddress }: AddressFlags,
  every: '::' | '0.0.0.0',
  warn: (text: string) => void,
): ListenAddresses {
  const there = (flag: string, address: string | undefined) => {
    if (address !== '::' || every === '::') return address;
    warn(`--${flag}=:: listens on 0.0.0.0: this machine has no IPv6`);
    return every;
  };
  const all = there('bind-address', bindAddress) ?? every;
  return {
    grpc: there('grpc-bind-address', grpcBindAddress) ?? all,
    health: there('grpc-health-bind-address', grpcHealthBindAddress) ?? all,
    metrics: there('metrics-bind-address', metricsBindAddress) ?? all,
  };
}

function socketFile({ grpcSocket, grpcSocketMode, grpcSocketOwner }: ListenFlags): ListenSettings['socket'] {
  return grpcSocket === undefined ? undefined : { path: grpcSocket, mode: grpcSocketMode, owner: grpcSocketOwner };
}

async function servingTls(flags: ListenFlags): Promise<TlsMaterial> {
  const pair = flags.certPath ? readCertificate(flags.certPath, 'cert-path') : await selfSignedCertificate();
  return {
    ...pair,
    minVersion: flags.tlsMinVersion,
    ciphers: flags.tlsCipherSuites.length === 0 ? AEAD_CIPHERS : flags.tlsCipherSuites.join(':'),
    clientCa: flags.clientCaFile ? clientAuthority(flags.clientCaFile, 'client-ca-file') : undefined,
  };
}

function metricsTls(flags: ListenFlags): ListenSettings['metricsTls'] {
  if (!flags.metricsCertDir) return undefined;
  const pair = { ...readCertificate(flags.metricsCertDir, 'metrics-cert-dir'), ciphers: AEAD_CIPHERS };
  return flags.metricsClientCaFile
    ? { ...pair, clientCa: clientAuthority(flags.metricsClientCaFile, 'metrics-client-ca-file') }
    : pair;
}

function clientAuthority(path: string, flag: string): string {
  try {
    const pem = readPlainText(path, PEM_BYTES_MAX);
    new X509Certificate(pem);
    return pem;
  } catch (error) {
    throw new Error(`--${flag}: ${path} is no PEM certificate that can be read: ${errorMessage(error)}`);
  }
}
