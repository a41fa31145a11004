/** Bytes that stand for one token where nothing counts tokens (llm-d-router's token-producer, estimate mode). */
export const TOKEN_BYTES = 4;

/** Tokens of a block where nothing produces prefix matches; the shards count with it all the same. */
export const PLAIN_BLOCK_TOKENS = 64;
