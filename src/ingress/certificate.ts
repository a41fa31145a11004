import { createPrivateKey, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { KeyPair } from '../contract/listen-settings.js';
import { errorMessage } from '../runtime/error-message.js';
import { PEM_BYTES_MAX, readPlainText } from '../runtime/plain-file.js';
import { readProblem } from '../runtime/read-problem.js';

/** Days for which a generated certificate is valid: as long as llm-d-router's. */
const VALID_DAYS = 3650;

/**
 * A self-signed certificate for `--secure-serving` without `--cert-path`. Elliptic, because its key takes milliseconds
 * where llm-d-router's RSA-4096 takes seconds; proxies verify neither.
 */
export async function selfSignedCertificate(): Promise<KeyPair> {
  // Loaded here alone: most proxies speak plain text to a picker beside them, and the library takes a while.
  const { generate } = await import('selfsigned');
  const notAfterDate = new Date(Date.now() + VALID_DAYS * 86_400_000);
  const { private: key, cert } = await generate([{ name: 'organizationName', value: 'Inference Ext' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notAfterDate,
  });
  return { key, cert };
}

/**
 * Reads tls.crt and tls.key of a folder, as Kubernetes mounts a TLS secret.
 * @param flag that names the folder, for the message
 * @throws with one line that names the flag and the file, also when the two are no usable pair.
 */
export function readCertificate(folder: string, flag: string): KeyPair {
  const read = (file: string) => {
    const path = join(folder, file);
    try {
      return readPlainText(path, PEM_BYTES_MAX);
    } catch (error) {
      throw new Error(`--${flag}: ${path} ${readProblem(error)}`);
    }
  };
  const pair = { cert: read('tls.crt'), key: read('tls.key') };
  try {
    createSecureContext(pair);
    // OpenSSL takes a certificate beside a key of another kind, and fails each handshake.
    if (!new X509Certificate(pair.cert).checkPrivateKey(createPrivateKey(pair.key))) {
      throw new Error('the key is that of another certificate');
    }
  } catch (error) {
    const why = errorMessage(error);
    throw new Error(`--${flag}: tls.crt and tls.key of ${folder} are no PEM certificate with its key: ${why}`);
  }
  return pair;
}
