import { isIP, SocketAddress } from 'node:net';

/** Value of an address field: an IP in its canonical text (IPv6 without brackets), or a name to be resolved. */
export type HostAddress = { readonly ip: string } | { readonly hostName: string };

// RFC 1123 with underscores, which container networks use, and an optional dot at the end.
const HOST_NAME =
  /^(?=.{1,253}\.?$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*\.?$/i;

/** Reads an address: IPv4, IPv6 with or without brackets, or a host name. Undefined when it is none of these. */
export function readHostAddress(text: string): HostAddress | undefined {
  const bracketed = text.startsWith('[') && text.endsWith(']');
  const plain = bracketed ? text.slice(1, -1) : text;
  // A zone (fe80::1%eth0) means something on one machine only: it cannot be a destination for a proxy.
  if (plain.includes('%')) return undefined;
  const version = isIP(plain);
  if (version === 6) return { ip: new SocketAddress({ address: plain, family: 'ipv6' }).address };
  if (bracketed) return undefined;
  if (version === 4) return { ip: plain };
  // Digits and dots alone are a mistyped IPv4 address, which resolvers would read in surprising ways.
  if (/^[0-9.]+$/.test(plain) || !HOST_NAME.test(plain)) return undefined;
  return { hostName: plain.toLowerCase() };
}
