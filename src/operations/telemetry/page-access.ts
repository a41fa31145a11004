import { createHash, timingSafeEqual } from 'node:crypto';
import { type BigIntStats, statSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { readPlainText, SECRET_BYTES_MAX } from '../../runtime/plain-file.js';
import { readProblem } from '../../runtime/read-problem.js';

/** A reader of the metrics port. */
export interface PageReader {
  /** Bearer token; undefined = none was sent. */
  readonly token: string | undefined;
  readonly path: string;
  /** `post` asks for an effect. */
  readonly verb: 'get' | 'post';
  /** Whether the request comes from this machine, and no proxy has forwarded it. */
  readonly isLocal: boolean;
}

/** Status 200 = may read; any other status is answered with the reason. */
export interface ReadAnswer {
  readonly status: number;
  readonly reason: string;
}

/** Whether a reader may read a page. */
export type MayRead = (reader: PageReader) => ReadAnswer | Promise<ReadAnswer>;

const ALLOWED: ReadAnswer = { status: 200, reason: '' };
const FORWARDED_HEADERS = ['forwarded', 'x-forwarded-for'];
/** IPv4 as an IPv6 socket shows it. */
const MAPPED = /^::ffff:/;

/** Whether an address of a socket is that of the machine itself. */
export function isLoopback(address: string | undefined): boolean {
  return address === '::1' || /^127\./.test((address ?? '').replace(MAPPED, ''));
}

/** The reader who sent a request for a path. */
export function readerOf(request: IncomingMessage, path: string): PageReader {
  const token = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
  const isForwarded = FORWARDED_HEADERS.some((name) => request.headers[name] !== undefined);
  const verb = request.method === 'POST' ? 'post' : 'get';
  return { token, path, verb, isLocal: !isForwarded && isLoopback(request.socket.remoteAddress) };
}

/** Opens `/metrics` to every client and all other pages to this machine alone. */
export function localPages({ path, isLocal }: PageReader): ReadAnswer {
  if (path === '/metrics' || isLocal) return ALLOWED;
  const reason = 'only this machine may read the page: forward the port, or protect it with --metrics-auth-token-file';
  return { status: 403, reason };
}

/** Opens every page to readers with the token of a file, which is read again when it changes. */
export class TokenFile {
  readonly #path: string;
  readonly #report: (problem: string) => void;
  #seen = '';
  #digest: Buffer;

  /** @throws Error that names the flag when the file has no token */
  constructor(path: string, report: (problem: string) => void) {
    this.#path = path;
    this.#report = report;
    try {
      this.#seen = versionOf(statSync(path, { bigint: true }));
      this.#digest = digestOf(readToken(path));
    } catch (error) {
      throw new Error(`--metrics-auth-token-file: ${path} ${readProblem(error)}`);
    }
  }

  readonly mayRead: MayRead = ({ token }) => {
    this.#refresh();
    if (token === undefined) return { status: 401, reason: 'a bearer token is required' };
    // Digests have one length, so the comparison takes the same time for every token.
    return timingSafeEqual(digestOf(token), this.#digest)
      ? ALLOWED
      : { status: 403, reason: 'the token is another one' };
  };

  /** Keeps the last token while the file cannot be read. */
  #refresh(): void {
    try {
      const version = versionOf(statSync(this.#path, { bigint: true }));
      if (version === this.#seen) return;
      this.#digest = digestOf(readToken(this.#path));
      this.#seen = version;
    } catch (error) {
      if (this.#seen !== '') this.#report(`the token stays as it was: ${this.#path} ${readProblem(error)}`);
      this.#seen = '';
    }
  }
}

function versionOf({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
}

function readToken(path: string): string {
  const token = readPlainText(path, SECRET_BYTES_MAX).trim();
  if (token === '') throw new Error('is empty: write the token into it');
  if (/\s/.test(token)) throw new Error('has blanks or line breaks in its token: remove them');
  return token;
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
