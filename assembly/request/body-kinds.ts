// The kinds of request body. A scan is told its kind by the path of the request.
//
// Owns nothing.
import { RequestScan } from './scan-state';

export const PROMPT_COMPLETIONS: u32 = 0;
export const PROMPT_CHAT: u32 = 1;
export const PROMPT_RESPONSES: u32 = 2;
export const PROMPT_EMBEDDINGS: u32 = 3;
export const PROMPT_CONVERSATIONS: u32 = 4;
export const PROMPT_IMAGES: u32 = 5;
export const PROMPT_MESSAGES: u32 = 6; // Anthropic
export const PROMPT_TOKENS: u32 = 7; // vLLM's generate
export const PROMPT_SGLANG: u32 = 8; // SGLang's generate

export function ofSglang(scan: RequestScan): bool {
  return scan.kind == PROMPT_SGLANG;
}
