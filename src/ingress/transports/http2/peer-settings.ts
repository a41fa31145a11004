import {
  ConnectionError,
  ErrorCode,
  FRAME_BYTES_LIMIT,
  FRAME_BYTES_MAX,
  Setting,
  WINDOW_BYTES_MAX,
} from './protocol.js';

const SETTING_BYTES = 6;

/**
 * Reads the payload of a SETTINGS frame (section 6.5).
 * @returns the initial window that the last of its settings names; undefined when none does. The rest concerns what this side
 * never does: it pushes nothing, adds nothing to the peer's header table, and sends frames and lists of the least size.
 * @throws ConnectionError when a value is out of its range
 */
export function initialWindowOf(bytes: Buffer, from: number, to: number): number | undefined {
  if ((to - from) % SETTING_BYTES !== 0) throw new ConnectionError(ErrorCode.frameSize, 'SETTINGS of a wrong size');
  let window: number | undefined;
  for (let at = from; at < to; at += SETTING_BYTES) {
    const value = bytes.readUInt32BE(at + 2);
    switch (bytes.readUInt16BE(at)) {
      case Setting.enablePush:
        if (value > 1) throw new ConnectionError(ErrorCode.protocol, 'ENABLE_PUSH is neither 0 nor 1');
        break;
      case Setting.initialWindowSize:
        if (value > WINDOW_BYTES_MAX)
          throw new ConnectionError(ErrorCode.flowControl, 'an initial window out of range');
        window = value;
        break;
      case Setting.maxFrameSize:
        if (value < FRAME_BYTES_MAX || value > FRAME_BYTES_LIMIT) {
          throw new ConnectionError(ErrorCode.protocol, 'a frame size out of range');
        }
    }
  }
  return window;
}
