// The grammar of JSON numbers: which byte may follow which.
//
// Owns nothing.
import { DOT, isDigit, MINUS, PLUS, ZERO } from './lexemes';

// Bytes that may come next; a number may end from LEX_ZERO on.
export const LEX_MINUS: u32 = 13;
const LEX_DOT: u32 = 14;
const LEX_EXPONENT: u32 = 15; // behind e
const LEX_SIGN: u32 = 16; // behind the exponent's sign
export const LEX_ZERO: u32 = 17; // behind a leading zero
export const LEX_INTEGER: u32 = 18;
const LEX_FRACTION: u32 = 19;
const LEX_POWER: u32 = 20; // digits of the exponent
export const LEX_NUMBER_OVER: u32 = 21;
export const LEX_NUMBER_BAD: u32 = 22;

/** The grammar of numbers, RFC 8259 section 6: what the next byte may be after `byte`. */
export function numberStep(lex: u32, byte: u32): u32 {
  const digit = isDigit(byte);
  switch (lex) {
    case LEX_INTEGER:
      if (digit) return LEX_INTEGER;
      break;
    case LEX_FRACTION:
      if (digit) return LEX_FRACTION;
      return (byte | 0x20) == 0x65 ? LEX_EXPONENT : LEX_NUMBER_OVER;
    case LEX_POWER:
      return digit ? LEX_POWER : LEX_NUMBER_OVER;
    case LEX_MINUS:
      if (byte == ZERO) return LEX_ZERO;
      return digit ? LEX_INTEGER : LEX_NUMBER_BAD;
    case LEX_DOT:
      return digit ? LEX_FRACTION : LEX_NUMBER_BAD;
    case LEX_EXPONENT:
      if (byte == PLUS || byte == MINUS) return LEX_SIGN;
      return digit ? LEX_POWER : LEX_NUMBER_BAD;
    case LEX_SIGN:
      return digit ? LEX_POWER : LEX_NUMBER_BAD;
    default: // LEX_ZERO
      break;
  }
  if (byte == DOT) return LEX_DOT;
  return (byte | 0x20) == 0x65 ? LEX_EXPONENT : LEX_NUMBER_OVER;
}
