import { Violation } from './oracle.js';

interface Message {
  readonly text: string;
  readonly fate: 'under way' | 'acknowledged' | 'refused';
  /** A sync that covers the message has come to its end. */
  readonly isDurable: boolean;
  /** Whether it may be gone: it is being taken; it was given, or confirmed; before an older one; durably; with the whole queue; by damage. */
  readonly removal: 'none' | 'begun' | 'given' | 'ahead' | 'durable' | 'emptied' | 'damaged';
}

/** What a queue has promised until a moment. */
export type DiskQueuePromises = readonly Message[];

export interface AfterCrash {
  /** Every message that the queue gives. */
  readonly read: readonly string[];
  /** What it said before how many it has. */
  readonly depth: number;
  /** The process alone was gone: nothing that was acknowledged may be missing. */
  readonly isKilled: boolean;
  /** No error of the disk came before: no more than `syncEvery` messages come again. */
  readonly isWell: boolean;
  /** A file that the disk failed to read was set aside: what was in it is missing. */
  readonly isSetAside?: boolean;
}

/**
 * Knows what was put into a disk queue, what was acknowledged and what was removed, and checks what is read after a crash:
 *
 * 1. it is a run of what was put, in that order and without a gap; what was refused may be in it or not;
 * 2. nothing that was not removed is missing in front of it;
 * 3. fewer than `syncEvery` acknowledged messages are missing behind it, and none that a sync has covered;
 * 4. no more than `syncEvery` messages come again, and none whose removal a sync has covered;
 * 5. the depth was as many as are read.
 */
export class DiskQueueOracle {
  private messages: Message[] = [];

  /** @param isWell whether the disk does not fail: then a sync that should have come has come, and what was refused is gone for good */
  constructor(
    private readonly syncEvery: number,
    private readonly isWell = true,
  ) {}

  get promises(): DiskQueuePromises {
    return this.messages.slice();
  }

  /** @returns what to call with what became of it */
  put(text: string): (fate: Message['fate']) => void {
    const place = this.messages.push({ text, fate: 'under way', isDurable: false, removal: 'none' }) - 1;
    return (fate) => this.change(place, { fate });
  }

  /** A message is about to be taken. @returns what to call with the one that was given, or where there was none */
  take(isInFlight: boolean): (text: string | undefined) => void {
    const place = this.messages.findIndex(isThere);
    if (place !== -1 && !isInFlight) this.change(place, { removal: 'begun' });
    return (text) => {
      const given = text === undefined ? -1 : this.placeOf(text);
      if (isInFlight) return;
      if (place !== -1) this.change(place, { removal: 'none' });
      if (given !== -1) this.change(given, { removal: 'given' });
      // A start behind an error may find what was refused, and what was given and could not be written down.
      if (text !== undefined && given !== place && this.isWell)
        throw new Violation(`${text} was taken in the place of ${this.messages[place]?.text ?? 'nothing'}`);
    };
  }

  /** The message stands where a file is damaged: it may be gone. */
  damaged(text: string): void {
    this.change(this.placeOf(text), { removal: 'damaged' });
  }

  confirm(text: string): void {
    const place = this.placeOf(text);
    this.change(place, { removal: this.oldest(this.messages) < place ? 'ahead' : 'given' });
  }

  emptying(): void {
    // What another attempt was to remove may be gone or not.
    const after = { none: 'emptied', emptied: 'begun' } as const;
    this.messages = this.messages.map((message) => ({
      ...message,
      removal: message.removal === 'none' || message.removal === 'emptied' ? after[message.removal] : message.removal,
    }));
  }

  emptied(): void {
    this.messages = this.messages.map((message) => ({ ...message, removal: message.removal === 'emptied' ? 'durable' : message.removal }));
  }

  /** Everything that was put and removed until now is durable. */
  synced(): void {
    if (!this.isWell) return;
    const oldest = this.oldest(this.messages);
    this.messages = this.messages.map((message, place) => ({
      ...message,
      isDurable: message.fate === 'acknowledged',
      removal: (message.removal === 'given' || message.removal === 'ahead') && place < oldest ? 'durable' : message.removal,
    }));
  }

  /** What has to be read where nothing is lost and nothing comes again. */
  get expected(): string[] {
    return this.messages.filter(({ fate, removal }) => fate === 'acknowledged' && removal === 'none').map(({ text }) => text);
  }

  check(messages: DiskQueuePromises, { read, depth, isKilled, isWell, isSetAside = false }: AfterCrash): void {
    const isDamaged = messages.some(({ removal }) => removal === 'damaged');
    // What is damaged is known, and not counted any more, only once it was come to.
    if (isDamaged ? depth < read.length : depth !== read.length)
      throw new Violation(`the depth is ${depth}, and ${read.length} messages are read`);
    const places = read.map((text) => messages.findIndex((message) => message.text === text));
    for (const [index, place] of places.entries()) {
      if (place === -1) throw new Violation(`${read[index]} is read and was never put`);
      if (index > 0 && place <= (places[index - 1] ?? -1)) throw new Violation(`${read[index]} is read behind ${read[index - 1]}`);
    }
    if (isSetAside) return;
    const isRead = new Set(places);
    const last = places.at(-1) ?? -1;
    // All are gone, or none; on a full disk, where files go before the metadata can say so, the first ones.
    const isEmptied = !isWell || !messages.some(({ removal }, place) => removal === 'emptied' && isRead.has(place));
    const isKept = ({ fate, removal }: Message): boolean =>
      fate === 'acknowledged' && (removal === 'none' || (removal === 'emptied' && !isEmptied));
    const missing = messages.filter((message, place) => isKept(message) && !isRead.has(place));
    const gap = messages.find(
      ({ fate, removal }, place) =>
        fate === 'acknowledged' && removal !== 'damaged' && place > (places[0] ?? last) && place < last && !isRead.has(place),
    );
    if (gap !== undefined) throw new Violation(`${nameOf(gap)} is missing in between`);
    const skipped = missing.find((message) => messages.indexOf(message) < last);
    if (skipped !== undefined) throw new Violation(`${nameOf(skipped)} was not removed, and reading begins behind it`);
    const lost = missing.find(({ isDurable }) => isDurable);
    if (lost !== undefined) throw new Violation(`${nameOf(lost)} was durable and is lost`);
    if (missing.length >= (isKilled ? 1 : this.syncEvery)) throw new Violation(`${missing.length} acknowledged messages are lost`);
    if (isWell) this.checkRemovals(messages, isRead);
  }

  private checkRemovals(messages: DiskQueuePromises, isRead: ReadonlySet<number>): void {
    const again = messages.find(({ removal }, place) => removal === 'durable' && isRead.has(place));
    if (again !== undefined) throw new Violation(`${nameOf(again)} was removed durably and comes again`);
    // What was confirmed before an older message was may come again with that one.
    const count = messages.filter(({ removal }, place) => removal === 'given' && isRead.has(place)).length;
    if (count > this.syncEvery) throw new Violation(`${count} messages come again`);
  }

  /** The place of the first message that was not removed, or behind all of them. */
  private oldest(messages: DiskQueuePromises): number {
    const place = messages.findIndex(isThere);
    return place === -1 ? messages.length : place;
  }

  private placeOf(text: string): number {
    return this.messages.findIndex((message) => message.text === text);
  }

  private change(place: number, change: Partial<Message>): void {
    this.messages[place] = { ...(this.messages[place] as Message), ...change };
  }
}

function isThere({ fate, removal }: Message): boolean {
  return fate !== 'refused' && removal === 'none';
}

function nameOf({ text }: Message): string {
  return text.slice(0, 'message 10'.length);
}
