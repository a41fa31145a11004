import type { KeyPair } from '../../contract/listen-settings.js';
import { readCertificate } from '../../ingress/certificate.js';
import { FileWatch } from '../../pool/discovery/file-watch.js';
import { ReportOnce } from '../../runtime/report-once.js';

export interface CertificateWatchOptions {
  readonly folder: string;
  /** Whether changes of the files are followed; otherwise they are read by `reload` only. */
  readonly watched: boolean;
  /** The flag that names the folder. */
  readonly flag: string;
  /** The key pair in use. */
  readonly pair: KeyPair;
  readonly changed: (pair: KeyPair) => void;
  readonly report: (problem: string) => void;
}

/** Both files are written one after the other. Time without a change after which both files belong together. */
const SETTLE_MS = 250;

/**
 * Follows tls.crt and tls.key of a folder (`--enable-cert-reload`), or reads them again when asked (SIGHUP). A pair
 * that cannot be used changes nothing.
 */
export class CertificateWatch {
  readonly #options: CertificateWatchOptions;
  readonly #watches: readonly FileWatch[];
  #pair: KeyPair;
  readonly #problems: ReportOnce;

  constructor(options: CertificateWatchOptions) {
    this.#options = options;
    this.#pair = options.pair;
    this.#problems = new ReportOnce((problem) => options.report(`${problem}; the certificate stays as it was`));
    const read = async () => this.#read();
    this.#watches = (options.watched ? ['tls.crt', 'tls.key'] : []).map(
      (file) => new FileWatch(`${options.folder}/${file}`, { settleMs: SETTLE_MS }, read),
    );
  }

  /** Reads both files now. */
  reload(): void {
    this.#read();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.stop()));
  }

  #read(): void {
    const { folder, flag, changed } = this.#options;
    let next: KeyPair;
    try {
      next = readCertificate(folder, flag);
    } catch (error) {
      this.#problems.problem(error);
      return;
    }
    this.#problems.over();
    if (next.cert === this.#pair.cert && next.key === this.#pair.key) return;
    this.#pair = next;
    changed(next);
  }
}
