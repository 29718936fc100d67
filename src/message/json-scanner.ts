import { ErrorCode, MmmqError } from '../core/index.js';

/** No scanner goes deeper; each may have a lower limit of its own. */
export const MAX_SCAN_DEPTH = 1024;

/** The bytes are not JSON from `position` on, or go deeper than the scanner may. */
export class JsonScanError extends MmmqError {
  constructor(
    readonly position: number,
    readonly kind: 'syntax' | 'depth',
    rule: string,
  ) {
    super(ErrorCode.INVALID_VALUE, `${rule}, at byte ${position}`);
  }
}

const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LOWER_F = 0x66;
const LOWER_N = 0x6e;
const LOWER_T = 0x74;
const LOWER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
/** What `byteAt` gives behind the last byte: equal to no byte. */
const END = -1;

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const NULL = Buffer.from('null');

/** By byte: 1 where it may stand for itself inside a string. Bytes above 0x7f are parts of UTF-8, which is checked elsewhere. */
const PLAIN = new Uint8Array(256).fill(1, SPACE);
PLAIN[QUOTE] = 0;
PLAIN[BACKSLASH] = 0;

/** By byte: 1 where it may follow a back-slash alone. */
const SINGLE_ESCAPE = new Uint8Array(256);
for (const byte of Buffer.from('"\\/bfnrt')) SINGLE_ESCAPE[byte] = 1;

/** By byte: 1 for a hexadecimal digit. */
const HEX_DIGIT = new Uint8Array(256);
for (const byte of Buffer.from('0123456789abcdefABCDEF')) HEX_DIGIT[byte] = 1;

/**
 * The closing byte of each container that is open, by level. One for all scanners: a value is skipped without a pause, so only one scanner
 * uses it at a time, and nothing in it outlives the call.
 */
const closingBytes = new Uint8Array(MAX_SCAN_DEPTH + 1);

/**
 * Walks over JSON (RFC 8259, exactly) in a buffer without making objects of it: the caller steps through the members that he knows, and
 * whole values are skipped and come back as a span of bytes. No recursion, no garbage per token; the nesting is limited.
 *
 * It does not look at the encoding: that the bytes are UTF-8 is the caller's to check (`isUtf8`), and a byte order mark is an unexpected
 * byte like any other.
 *
 * Always to be called in the order of the grammar: `enterObject`, then `nextMember` and one value in turn, until `nextMember` is false; and
 * likewise `enterArray` and `nextElement`. Objects and arrays can be entered inside of one another.
 */
export class JsonScanner {
  /** The next byte to look at. */
  position = 0;
  /** The span of the last member's name, with its quotes. */
  nameStart = 0;
  nameEnd = 0;
  /** The span of the last value that was skipped. */
  valueStart = 0;
  valueEnd = 0;

  /** The last thing was a member or an element: a comma comes before the next. */
  private afterItem = false;

  /** @param maxDepth how many levels of arrays and objects a skipped value may have; a value that is itself an array has one */
  constructor(
    private readonly bytes: Buffer,
    private readonly maxDepth: number,
  ) {
    if (maxDepth > MAX_SCAN_DEPTH) throw new RangeError(`maxDepth is at most ${MAX_SCAN_DEPTH}`);
  }

  /** Skips white space and gives the byte behind it, or -1 at the end. */
  peek(): number {
    this.position = this.afterSpace(this.position);
    return this.byteAt(this.position);
  }

  enterObject(): void {
    this.enter(OPEN_BRACE, 'expected "{"');
  }

  enterArray(): void {
    this.enter(OPEN_BRACKET, 'expected "["');
  }

  /** Steps to the next member's value; its name's span is set then. @returns false when the object is closed instead */
  nextMember(): boolean {
    if (!this.nextItem(CLOSE_BRACE, 'expected "," or "}"')) return false;
    this.nameStart = this.position;
    this.nameEnd = this.afterString(this.position, 'expected a member name in quotes');
    this.position = this.afterColon(this.nameEnd);
    return true;
  }

  /** Steps to the next element's first byte. @returns false when the array is closed instead */
  nextElement(): boolean {
    return this.nextItem(CLOSE_BRACKET, 'expected "," or "]"');
  }

  private enter(openingByte: number, expected: string): void {
    if (this.peek() !== openingByte) this.fail(this.position, expected);
    this.position++;
    this.afterItem = false;
  }

  private nextItem(closingByte: number, expected: string): boolean {
    const byte = this.peek();
    if (byte === closingByte) {
      this.position++;
      // What ends here is a value of what is around it.
      this.afterItem = true;
      return false;
    }
    if (this.afterItem) {
      if (byte !== COMMA) this.fail(this.position, expected);
      this.position = this.afterSpace(this.position + 1);
      this.afterItem = false;
    }
    return true;
  }

  /** Skips one value of whatever kind and sets its span. */
  skipValue(): void {
    this.valueStart = this.afterSpace(this.position);
    this.valueEnd = this.afterValue(this.valueStart);
    this.position = this.valueEnd;
    this.afterItem = true;
  }

  /** Nothing but white space may follow. */
  expectEnd(): void {
    if (this.peek() !== END) this.fail(this.position, 'expected nothing more');
  }

  private afterValue(start: number): number {
    let depth = 0;
    let position = start;
    for (;;) {
      // A value begins here.
      position = this.afterSpace(position);
      const first = this.byteAt(position);
      if (first === OPEN_BRACE || first === OPEN_BRACKET) {
        if (depth === this.maxDepth) {
          throw new JsonScanError(position, 'depth', `has more than ${this.maxDepth} levels of arrays and objects`);
        }
        depth++;
        closingBytes[depth] = first === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
        const next = this.afterSpace(position + 1);
        if (this.byteAt(next) !== closingBytes[depth]) {
          position = first === OPEN_BRACE ? this.afterName(next) : next;
          continue;
        }
        depth--;
        position = next + 1;
      } else {
        position = this.afterScalar(position, first);
      }

      // A value has ended here: close what ends with it, and go on behind the comma.
      for (;;) {
        if (depth === 0) return position;
        position = this.afterSpace(position);
        const byte = this.byteAt(position);
        const closing = closingBytes[depth];
        position++;
        if (byte === closing) {
          depth--;
        } else if (byte === COMMA) {
          if (closing === CLOSE_BRACE) position = this.afterName(this.afterSpace(position));
          break;
        } else {
          this.fail(position - 1, closing === CLOSE_BRACE ? 'expected "," or "}"' : 'expected "," or "]"');
        }
      }
    }
  }

  private afterScalar(start: number, first: number): number {
    switch (first) {
      case QUOTE:
        return this.afterString(start, 'expected a string');
      case LOWER_T:
        return this.afterWord(start, TRUE);
      case LOWER_F:
        return this.afterWord(start, FALSE);
      case LOWER_N:
        return this.afterWord(start, NULL);
      default:
        return this.afterNumber(start);
    }
  }

  private afterName(start: number): number {
    return this.afterColon(this.afterString(start, 'expected a member name in quotes'));
  }

  private afterColon(start: number): number {
    const position = this.afterSpace(start);
    if (this.byteAt(position) !== COLON) this.fail(position, 'expected ":"');
    return position + 1;
  }

  private afterString(start: number, expected: string): number {
    if (this.byteAt(start) !== QUOTE) this.fail(start, expected);
    let position = start + 1;
    for (;;) {
      while (PLAIN[this.byteAt(position)] === 1) position++;
      const byte = this.byteAt(position);
      if (byte === QUOTE) return position + 1;
      if (byte === END) this.fail(position, 'a string does not end');
      if (byte !== BACKSLASH) this.fail(position, 'a control character stands in a string, where it must be escaped');
      position = this.afterEscape(position + 1);
    }
  }

  private afterEscape(position: number): number {
    const byte = this.byteAt(position);
    if (SINGLE_ESCAPE[byte] === 1) return position + 1;
    if (byte !== LOWER_U) this.fail(position, 'an escape that JSON does not know');
    for (let digit = position + 1; digit <= position + 4; digit++) {
      if (HEX_DIGIT[this.byteAt(digit)] !== 1) this.fail(digit, 'expected four hexadecimal digits after "\\u"');
    }
    return position + 5;
  }

  private afterWord(start: number, word: Buffer): number {
    const end = start + word.length;
    if (end > this.bytes.length || this.bytes.compare(word, 0, word.length, start, end) !== 0) this.fail(start, 'expected a value');
    return end;
  }

  private afterNumber(start: number): number {
    let position = this.byteAt(start) === MINUS ? start + 1 : start;
    if (this.byteAt(position) === ZERO) {
      position++;
    } else {
      position = this.afterDigits(position, position === start ? 'expected a value' : 'expected a digit');
    }
    if (this.byteAt(position) === POINT) position = this.afterDigits(position + 1, 'expected a digit');
    // Setting this bit makes a capital letter small.
    if ((this.byteAt(position) | 0x20) === 0x65) {
      const sign = this.byteAt(position + 1);
      position = this.afterDigits(sign === PLUS || sign === MINUS ? position + 2 : position + 1, 'expected a digit');
    }
    return position;
  }

  private afterDigits(start: number, expected: string): number {
    let position = start;
    for (let byte = this.byteAt(position); byte >= ZERO && byte <= NINE; byte = this.byteAt(position)) position++;
    if (position === start) this.fail(start, expected);
    return position;
  }

  private afterSpace(start: number): number {
    let position = start;
    for (;;) {
      const byte = this.byteAt(position);
      if (byte !== SPACE && byte !== LINE_FEED && byte !== CARRIAGE_RETURN && byte !== TAB) return position;
      position++;
    }
  }

  private byteAt(position: number): number {
    return position < this.bytes.length ? (this.bytes[position] as number) : END;
  }

  private fail(position: number, rule: string): never {
    throw new JsonScanError(position, 'syntax', rule);
  }
}
