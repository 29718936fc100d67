import { topicOf } from '../../harness/messages.js';

/** The size of every message, as JSON. */
export const MESSAGE_BYTES = 256;
/** The topic of all messages. */
export const TOPIC = topicOf(0);

const DIGITS = 10;
const BEGINNING = `{"topic":"${TOPIC}","content":{"customer":"customer-3","amount":12.5,"isPaid":true,"number":"`;
const MIDDLE = '","text":"';
const END = '"}}';
const TEXT = 'x'.repeat(MESSAGE_BYTES - BEGINNING.length - DIGITS - MIDDLE.length - END.length);
const NUMBER_AT = '"number":"';

/** A message as an object, for the clients that spell it themselves. */
export interface NumberedMessage {
  readonly topic: string;
  readonly content: {
    readonly customer: string;
    readonly amount: number;
    readonly isPaid: boolean;
    readonly number: string;
    readonly text: string;
  };
}

/** A message that can be told from all others by its number, 0 or more: a JSON document of {@link MESSAGE_BYTES}. */
export function numberedText(number: number): string {
  return `${BEGINNING}${digitsOf(number)}${MIDDLE}${TEXT}${END}`;
}

export function numberedBytes(number: number): Buffer {
  return Buffer.from(numberedText(number), 'latin1');
}

export function numberedObject(number: number): NumberedMessage {
  return { topic: TOPIC, content: { customer: 'customer-3', amount: 12.5, isPaid: true, number: digitsOf(number), text: TEXT } };
}

/** The numbers of all messages in a text, in their order. */
export function numbersIn(text: string): number[] {
  const numbers: number[] = [];
  for (let at = text.indexOf(NUMBER_AT); at !== -1; at = text.indexOf(NUMBER_AT, at + NUMBER_AT.length + DIGITS)) {
    numbers.push(Number(text.slice(at + NUMBER_AT.length, at + NUMBER_AT.length + DIGITS)));
  }
  return numbers;
}

function digitsOf(number: number): string {
  return String(number).padStart(DIGITS, '0');
}
