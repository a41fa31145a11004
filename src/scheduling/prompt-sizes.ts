/** Bytes per token of the estimate without a tokeniser (llm-d-router's token-producer, estimate mode). */
export const TOKEN_BYTES = 4;

/** Tokens of a block when nothing produces prefix matches; the shards count in these blocks. */
export const PLAIN_BLOCK_TOKENS = 64;
