// Load of other replicas: the part of the load columns that their requests make up.
//
// Owns: the columns PEER_*, written by the control thread under the commit lock. A load column is the sum of the own
// ledger entries and of its PEER column, so scorers, filters and samples see the load of all replicas without a second
// read.
import * as column from '../columns/column';
import { renewWaiting } from '../columns/waiting';
import {
  COLUMN_INFLIGHT,
  COLUMN_INFLIGHT_TOKENS,
  COLUMN_OUTPUT_BLOCKS,
  COLUMN_PEER_OUTPUT,
  COLUMN_PEER_PREFILL,
  COLUMN_PEER_PROMPT,
  COLUMN_PEER_REQUESTS,
  COLUMN_PEER_TOKENS,
  COLUMN_PREFILL_TOKENS,
  COLUMN_PROMPT_TOKENS,
} from '../endpoints';

/** Replaces one peer column and moves the load column by the difference. Commit lock held. */
function replace(load: u32, peers: u32, slot: u32, value: u32): void {
  column.addU32(load, slot, value - column.u32(peers, slot));
  column.setU32(peers, slot, value);
}

/** Replaces the load of the peers on a slot. Commit lock held. */
export function setPeers(slot: u32, requests: u32, tokens: u32, prefill: u32, prompt: u32, output: u32): void {
  replace(COLUMN_INFLIGHT, COLUMN_PEER_REQUESTS, slot, requests);
  renewWaiting(slot);
  replace(COLUMN_INFLIGHT_TOKENS, COLUMN_PEER_TOKENS, slot, tokens);
  replace(COLUMN_PREFILL_TOKENS, COLUMN_PEER_PREFILL, slot, prefill);
  replace(COLUMN_PROMPT_TOKENS, COLUMN_PEER_PROMPT, slot, prompt);
  replace(COLUMN_OUTPUT_BLOCKS, COLUMN_PEER_OUTPUT, slot, output);
}

/** Forgets the peers of a slot that changes hands. Commit lock held; the load columns are 0. */
export function clearPeers(slot: u32): void {
  for (let peers = COLUMN_PEER_REQUESTS; peers <= COLUMN_PEER_OUTPUT; peers++) column.setU32(peers, slot, 0);
}

/** Adds the peers to load columns that a repair has set to 0. Commit lock held. */
export function addPeers(slot: u32): void {
  column.addU32(COLUMN_INFLIGHT, slot, column.u32(COLUMN_PEER_REQUESTS, slot));
  renewWaiting(slot);
  column.addU32(COLUMN_INFLIGHT_TOKENS, slot, column.u32(COLUMN_PEER_TOKENS, slot));
  column.addU32(COLUMN_PREFILL_TOKENS, slot, column.u32(COLUMN_PEER_PREFILL, slot));
  column.addU32(COLUMN_PROMPT_TOKENS, slot, column.u32(COLUMN_PEER_PROMPT, slot));
  column.addU32(COLUMN_OUTPUT_BLOCKS, slot, column.u32(COLUMN_PEER_OUTPUT, slot));
}
