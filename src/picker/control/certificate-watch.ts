import { readCertificate } from '../../ingress/certificate.js';
import type { KeyPair } from '../../ingress/transport.js';
import { FileWatch } from '../../pool/discovery/file-watch.js';

export interface CertificateWatchOptions {
  readonly folder: string;
  /** The flag that names the folder. */
  readonly flag: string;
  /** What is served now. */
  readonly pair: KeyPair;
  readonly changed: (pair: KeyPair) => void;
  readonly report: (problem: string) => void;
}

/** Both files are written one after the other: quiet for this long means that they belong together. */
const settleMs = 250;

/** Follows tls.crt and tls.key of a folder (`--enable-cert-reload`). A pair that cannot be used changes nothing. */
export class CertificateWatch {
  readonly #options: CertificateWatchOptions;
  readonly #watches: readonly FileWatch[];
  #pair: KeyPair;
  #lastProblem = '';

  constructor(options: CertificateWatchOptions) {
    this.#options = options;
    this.#pair = options.pair;
    const read = async () => this.#read();
    this.#watches = ['tls.crt', 'tls.key'].map(
      (file) => new FileWatch(`${options.folder}/${file}`, { settleMs }, read),
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.stop()));
  }

  #read(): void {
    const { folder, flag, changed, report } = this.#options;
    let next: KeyPair;
    try {
      next = readCertificate(folder, flag);
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      // The same problem at every look would only fill the log.
      if (problem !== this.#lastProblem) report(`${problem}; the certificate stays as it was`);
      this.#lastProblem = problem;
      return;
    }
    this.#lastProblem = '';
    if (next.cert === this.#pair.cert && next.key === this.#pair.key) return;
    this.#pair = next;
    changed(next);
  }
}
