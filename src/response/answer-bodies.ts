/** Milliseconds for which an answer with a body tells that the proxy sends the bodies of a share of answers. */
const SHARE_MS = 60_000;

/**
 * Remembers whether bodies of answers come. Where a share of the answers has bodies, those are samples of first tokens,
 * and the others are not: engines send the head of a stream before its first token.
 */
export class AnswerBodies {
  #lastMs = Number.NEGATIVE_INFINITY;

  /** Records a streamed answer with a body. @param atMs milliseconds of a monotonic clock */
  came(atMs: number): void {
    this.#lastMs = atMs;
  }

  /** Whether a streamed answer has had a body within the last minute. @param atMs by the clock of `came` */
  comeNow(atMs: number): boolean {
    return atMs - this.#lastMs <= SHARE_MS;
  }
}
