// Detection of media in a prompt: images, audio, video.
//
// Owns: the MediaState of each scan in this thread's part of REGION_SCANS. No lock: all of it belongs to one thread.
//
// A part says what it is in `type`, however deep in the prompt it lies (in a list of parts, in the result of a tool,
// among the items of the responses API). vLLM's generate has `features` beside its token ids instead.
import { SCAN_MEDIA_STATE } from './layout';
import { MediaState, RequestScan } from './scan-state';

/** Longest name of a type that matters, input_audio and input_image, and one more: what is longer is none. */
const LETTERS_MAX: u32 = 12;

export function mediaOf(scan: RequestScan): MediaState {
  return changetype<MediaState>(changetype<usize>(scan) + SCAN_MEDIA_STATE);
}

/** Forgets the media of the prompt before. */
export function mediaReset(scan: RequestScan): void {
  mediaOf(scan).seen = 0;
  mediaOf(scan).typeNext = 0;
}

/** Notes that the prompt has media of any kind. */
export function mediaNote(scan: RequestScan): void {
  mediaOf(scan).seen = 1;
}

/** Begins the string value of `type`. */
export function typeBegin(scan: RequestScan): void {
  const media = mediaOf(scan);
  media.typeLength = 0;
  media.type = 0;
  media.typeRest = 0;
}

/** Takes decoded bytes of it. */
export function typeTake(scan: RequestScan, from: usize, length: u32): void {
  const media = mediaOf(scan);
  let at = media.typeLength;
  for (let i: u32 = 0; i < length && at < LETTERS_MAX; i++) {
    store<u8>(media.typeText + <usize>at, load<u8>(from + <usize>i));
    at++;
  }
  media.typeLength = at;
}

/** Ends the type of a medium. */
export function typeEnd(scan: RequestScan): void {
  const media = mediaOf(scan);
  if (isMedium(media.typeLength, media.type, media.typeRest)) mediaNote(scan);
}

// Names as little-endian words: 0x6567616d69 is "image".
function isMedium(length: u32, word: u64, rest: u64): bool {
  if (length == 5) return word == 0x6567616d69 || word == 0x6f65646976 || word == 0x6f69647561; // image, video, audio
  if (length == 9) {
    if (rest != 0x6c) return false;
    return word == 0x72755f6567616d69 || word == 0x72755f6f65646976 || word == 0x72755f6f69647561; // …_url
  }
  if (length != 11) return false;
  if (word == 0x6d695f7475706e69) return rest == 0x656761; // input_image
  if (word == 0x75615f7475706e69) return rest == 0x6f6964; // input_audio
  return word == 0x69765f7475706e69 && rest == 0x6f6564; // input_video
}
