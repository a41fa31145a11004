import { isIP } from 'node:net';
import { type GateEntry, parseGate } from '../config/feature-gates.js';
import { parseQuantity } from '../config/quantity.js';
import { selectorAccepts } from '../contract/label-selector.js';
import type { SelectedLabels } from '../kubernetes/reflector.js';
import { didYouMean } from '../runtime/nearest-name.js';
import { DURATION_EXPECTED, parseDuration } from '../scheduling/duration.js';
import { BadSelector, parseSelector as readSelector } from '../scheduling/screeners/selector-text.js';
import { OPENSSL_CIPHERS } from './cipher-suites.js';
import { badValue, FlagError } from './flag-error.js';

/** Parses a flag's text. `previous` is the value so far, for flags that may be given several times. */
export type FlagParser<Value> = (text: string, flag: string, previous: Value) => Value;

/** Longest time a timer can be set for in Node.js, a little under 25 days. */
const DURATION_MS_MAX = 2 ** 31 - 1;
/** Length prefixes of gRPC messages have 32 bits. */
const LARGEST_MESSAGE = 2 ** 32 - 1;

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, false] as const),
]);

function refuse(flag: string, expected: string, text: string, hint = ''): never {
  throw badValue(flag, expected, text, hint);
}

export function parseText(text: string): string {
  return text;
}

/** One value for each time that the flag is given. */
export function parseTexts(text: string, _flag: string, previous: readonly string[]): readonly string[] {
  return [...previous, text];
}

/** Feature gates as a comma list; a flag that is given several times adds to it. */
export function parseGates(text: string, flag: string, previous: readonly GateEntry[]): readonly GateEntry[] {
  const entries = text.split(',').filter((entry) => entry !== '');
  return [
    ...previous,
    ...entries.map((entry) => parseGate(entry.trim(), (problem) => new FlagError(`--${flag}: ${problem}`))),
  ];
}

/** Takes an empty text for an absent flag. */
export function parseOptionalText(text: string): string | undefined {
  return text === '' ? undefined : text;
}

export function parseBoolean(text: string, flag: string): boolean {
  return BOOLEANS.get(text) ?? refuse(flag, 'expected true or false', text);
}

/** A whole number in [min, max]. */
export function parseInteger(min: number, max: number): FlagParser<number> {
  return (text, flag) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? value : refuse(flag, `expected a number from ${min} to ${max}`, text);
  };
}

export function parseOptionalInteger(min: number, max: number): FlagParser<number | undefined> {
  const parse = parseInteger(min, max);
  return (text, flag) => parse(text, flag, 0);
}

/** Port 0 lets the system choose. */
export const parsePort = parseInteger(0, 65_535);

/** IP address to listen on; an empty text is the same as no flag. */
export function parseAddress(text: string, flag: string): string | undefined {
  if (text === '') return undefined;
  const bare = text.replace(/^\[(.*)\]$/, '$1');
  return isIP(bare) === 0 ? refuse(flag, 'expected an IP address such as 127.0.0.1 or ::1', text) : bare;
}

/** Milliseconds, at least `least`. */
export function parseFlagDuration(least: number): FlagParser<number> {
  return (text, flag) => {
    const value = parseDuration(text) ?? refuse(flag, DURATION_EXPECTED, text);
    if (value < least) refuse(flag, least === 0 ? 'must not be negative' : 'must be longer than 0', text);
    if (value > DURATION_MS_MAX) refuse(flag, 'must be at most 596h', text);
    return value;
  };
}

export function parseOptionalDuration(least: number): FlagParser<number | undefined> {
  const parse = parseFlagDuration(least);
  return (text, flag) => parse(text, flag, 0);
}

/** Longest warm-up. For that before the start readiness waits. */
const WARM_UP_MS_MAX = 3_000;

export const parseWarmUp: FlagParser<number> = (text, flag, ...rest) => {
  const ms = parseFlagDuration(0)(text, flag, ...rest);
  if (ms > WARM_UP_MS_MAX) refuse(flag, 'must be at most 3s', text);
  return ms;
};

/** Bytes: a quantity, also with a B at its end (`10MiB`, `20MB`). */
export function parseBytes(text: string, flag: string): number {
  const value = parseQuantity(text.replace(/(?<=[kMGTP]i?)B$/, ''));
  if (value === undefined) return refuse(flag, 'expected a size such as 10Mi, 20MB or 1048576', text);
  if (value <= 0) return refuse(flag, 'must be greater than 0', text);
  return value;
}

/** Bytes of a gRPC message: 0 is the default, as in llm-d-router; a size beyond the largest possible means that one. */
export function parseMessageSize(text: string, flag: string): number | undefined {
  return text === '' || parseQuantity(text) === 0 ? undefined : Math.min(parseBytes(text, flag), LARGEST_MESSAGE);
}

export function parseChoice<Name extends string>(names: readonly Name[]): FlagParser<Name> {
  return (text, flag) =>
    names.find((name) => name === text) ??
    refuse(flag, `expected one of ${names.join(', ')}`, text, didYouMean(text, names));
}

const HEADER_EXPECTED = 'expected the name of a header of our own, such as x-inference-pod';
/** RFC 9110, section 5.6.2, in lower case, with a bound. */
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
/** Headers that clients and proxies act on, and those that Envoy lets no filter set. */
const MEANINGFUL_HEADERS: ReadonlySet<string> = new Set([
  ...['age', 'allow', 'cache-control', 'connection', 'date', 'etag', 'expires', 'host', 'keep-alive', 'last-modified'],
  ...[
    'location',
    'retry-after',
    'server',
    'set-cookie',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'vary',
    'via',
  ],
  ...['www-authenticate', 'x-request-id'],
]);
const MEANINGFUL_BEGINNINGS = /^(content-|access-control-|x-envoy-|:)/;

/** Name of a header that is added to answers, in lower case; an empty text is the same as no flag. */
export function parseAnswerHeader(text: string, flag: string): string | undefined {
  if (text === '') return undefined;
  const name = text.toLowerCase();
  if (!HEADER_NAME.test(name)) return refuse(flag, HEADER_EXPECTED, text);
  const isTaken = MEANINGFUL_HEADERS.has(name) || MEANINGFUL_BEGINNINGS.test(name);
  return isTaken ? refuse(flag, `${HEADER_EXPECTED}: clients and proxies act on this one`, text) : name;
}

const TLS_VERSIONS = { VersionTLS12: 'TLSv1.2', VersionTLS13: 'TLSv1.3' } as const;

/** Node.js's name of a TLS version that is given by Go's. */
export function parseTlsVersion(text: string, flag: string): 'TLSv1.2' | 'TLSv1.3' | undefined {
  if (text === '') return undefined;
  return TLS_VERSIONS[parseChoice(['VersionTLS12', 'VersionTLS13'])(text, flag, 'VersionTLS12')];
}

/** Host names without a port, in a list with commas; `*` stands for any. */
export function parseHostNames(text: string, flag: string, previous: readonly string[]): readonly string[] {
  const names = text.split(',').flatMap((part) => part.trim() || []);
  const wrong = names.find((name) => name !== '*' && !/^[\w-]+(\.[\w-]+)*\.?$/.test(name));
  if (wrong !== undefined) refuse(flag, 'expected host names without a port, such as picker.example.org, or *', wrong);
  return [...previous, ...names];
}

/** IP addresses and networks (CIDR), in a list with commas. */
export function parseNetworks(text: string, flag: string, previous: readonly string[]): readonly string[] {
  const networks = text.split(',').flatMap((part) => part.trim() || []);
  const wrong = networks.find((network) => !isNetwork(network));
  if (wrong !== undefined) {
    refuse(flag, 'expected IP addresses or networks such as 10.0.0.7, 10.8.0.0/16 or fd00::/8, with commas', wrong);
  }
  return [...previous, ...networks];
}

function isNetwork(text: string): boolean {
  const [address, bits, ...rest] = text.split('/');
  const family = isIP(address!);
  if (family === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

/** OpenSSL's names of cipher suites that are given by Go's, in a list with commas. */
export function parseCipherSuites(text: string, flag: string, previous: readonly string[]): readonly string[] {
  const names = text.split(',').filter((name) => name !== '');
  return [...previous, ...names.map((name) => openSslCipher(name.trim(), flag))];
}

function openSslCipher(name: string, flag: string): string {
  const known = OPENSSL_CIPHERS.get(name);
  if (known !== undefined) return known;
  const hint = didYouMean(name, OPENSSL_CIPHERS.keys()) || '; expected a name such as TLS_AES_128_GCM_SHA256';
  throw new FlagError(`--${flag}: unknown cipher suite ${JSON.stringify(name)}${hint}`);
}

/** One to eight ports, each kept once. */
export function parseTargetPorts(text: string, flag: string, previous: readonly number[]): readonly number[] {
  const parse = parseInteger(1, 65_535);
  const given = text.split(',').filter((part) => part !== '');
  const ports = [...new Set([...previous, ...given.map((part) => parse(part.trim(), flag, 0))])];
  if (ports.length > 8) refuse(flag, 'expected at most 8 ports', text);
  return ports;
}

const POOL_GROUPS = ['inference.networking.k8s.io', 'inference.networking.x-k8s.io'];

/** An API group. llm-d-router's help writes the one that it knows with its version, and takes an empty one. */
export function parsePoolGroup(text: string, flag: string): string {
  const group = text === '' ? POOL_GROUPS[0]! : text.replace(/\/v1$/, '');
  if (POOL_GROUPS.includes(group)) return group;
  return refuse(flag, `expected ${POOL_GROUPS.join(' or ')}`, text);
}

/** A label selector in the grammar of Kubernetes. */
export function parseSelector(text: string, flag: string): string {
  if (text === '') return text;
  try {
    readSelector(text);
    return text;
  } catch (error) {
    if (!(error instanceof BadSelector)) throw error;
    return refuse(flag, `${error.message}, at character ${text.indexOf(error.rule) + 1}`, text);
  }
}

/** The labels that a selector of `parseSelector` accepts. */
export function selectedLabels(selector: string): SelectedLabels {
  const rules = readSelector(selector);
  return { selector, accepts: (labels) => selectorAccepts(rules, labels) };
}

/** A zap log level: a name, or a positive number for a verbosity. */
export function parseZapLevel(text: string, flag: string): string {
  const names = ['debug', 'info', 'error', 'panic'];
  if (names.includes(text) || /^[1-9]\d*$/.test(text)) return text;
  return refuse(flag, `expected one of ${names.join(', ')} or a number above 0`, text);
}

/** Flags that name metrics moved into the configuration; giving one is an error. */
export function parseMovedMetric(_text: string, flag: string): undefined {
  throw new FlagError(
    `--${flag} is no longer supported: set engineConfigs of the core-metrics-extractor plugin instead`,
  );
}

/** Longest path of a Unix domain socket on Linux (unix(7)). */
const SOCKET_PATH_BYTES_MAX = 107;

/** Path of a Unix domain socket. */
export function parseSocketPath(text: string, flag: string): string | undefined {
  if (text === '') return undefined;
  if (!text.startsWith('/')) return refuse(flag, 'expected a path from the root, such as /run/pointsman.sock', text);
  if (Buffer.byteLength(text) <= SOCKET_PATH_BYTES_MAX) return text;
  return refuse(flag, `expected at most ${SOCKET_PATH_BYTES_MAX} bytes`, text);
}

/** Permissions of a file in octal digits. */
export function parseFileMode(text: string, flag: string): number {
  return /^0?[0-7]{3}$/.test(text) ? Number.parseInt(text, 8) : refuse(flag, 'expected a mode such as 0660', text);
}

/** User and group of a file. */
export interface FileOwner {
  readonly uid: number;
  readonly gid: number;
}

export function parseFileOwner(text: string, flag: string): FileOwner | undefined {
  if (text === '') return undefined;
  const match = /^(\d{1,9}):(\d{1,9})$/.exec(text);
  return match === null
    ? refuse(flag, 'expected a user and a group by number, such as 101:101', text)
    : { uid: Number(match[1]), gid: Number(match[2]) };
}
