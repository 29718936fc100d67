import type { FilePosition } from './file-position.js';

const NOTHING = Buffer.alloc(0);

/** A message that was taken, from the oldest that is not confirmed on. */
export interface TakenMessage {
  /** Before its record. */
  readonly start: FilePosition;
  /** Kept for whoever takes it next, should it be given back. */
  bytes: Buffer;
  state: 'taken' | 'given back' | 'confirmed';
}

/**
 * The messages that were taken and are not confirmed, in the order of the queue, and those behind them that are.
 *
 * The files know one place before which everything is removed. It is before the first message here that is not confirmed: those that
 * were confirmed behind it come again after a crash.
 */
export class InFlightWindow {
  private messages: TakenMessage[] = [];
  private unconfirmed = 0;
  private givenBack = 0;

  /** How many are not confirmed. */
  get count(): number {
    return this.unconfirmed;
  }

  /** How many are confirmed behind one that is not. */
  get confirmedBehind(): number {
    return this.messages.length - this.unconfirmed;
  }

  /** Before the oldest that is not confirmed; undefined where there is none. */
  get start(): FilePosition | undefined {
    return this.messages[0]?.start;
  }

  add(start: FilePosition, bytes: Buffer): TakenMessage {
    const message: TakenMessage = { start, bytes, state: 'taken' };
    this.messages.push(message);
    this.unconfirmed += 1;
    return message;
  }

  /** The oldest that was given back. */
  next(): TakenMessage | undefined {
    return this.givenBack === 0 ? undefined : this.messages.find(({ state }) => state === 'given back');
  }

  /** Takes one that was given back. */
  takeAgain(message: TakenMessage): void {
    message.state = 'taken';
    this.givenBack -= 1;
  }

  /** @returns false where it is not in flight any more */
  giveBack(message: TakenMessage): boolean {
    if (message.state !== 'taken') return false;
    message.state = 'given back';
    this.givenBack += 1;
    return true;
  }

  /** @returns false where it is not in flight any more */
  confirm(message: TakenMessage): boolean {
    if (message.state !== 'taken') return false;
    confirmed(message);
    this.unconfirmed -= 1;
    const first = this.messages.findIndex(({ state }) => state !== 'confirmed');
    this.messages.splice(0, first === -1 ? this.messages.length : first);
    return true;
  }

  /** The queue was emptied: none of them is anybody's any more. */
  clear(): void {
    this.messages.forEach(confirmed);
    this.messages = [];
    this.unconfirmed = 0;
    this.givenBack = 0;
  }
}

function confirmed(message: TakenMessage): void {
  message.state = 'confirmed';
  message.bytes = NOTHING;
}
