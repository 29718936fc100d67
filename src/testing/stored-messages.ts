import { DEAD_LETTER_PREFIX } from '../core/index.js';

/** A message as it was stored, parsed. */
export interface TestingMessage {
  readonly offset: number;
  readonly topic: string;
  readonly content: unknown;
  readonly id?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Epoch milliseconds of the test's clock. */
  readonly timestamp: number;
}

/** A message that a dispatcher has given up. */
export interface TestingDeadLetter {
  readonly dispatcher: string;
  /** Where the message is. */
  readonly topic: string;
  readonly offset: number;
  readonly attempts: number;
  readonly reason: string;
  /** The content of the message. */
  readonly content: unknown;
}

type StoredDeadLetter = Pick<TestingDeadLetter, 'topic' | 'offset' | 'attempts' | 'reason'> & {
  readonly message: { readonly content: unknown };
};

export function testingMessageOf(payload: Buffer, offset: number): TestingMessage {
  return { offset, ...(JSON.parse(payload.toString()) as Omit<TestingMessage, 'offset'>) };
}

export function deadLetterIn(deadLetterTopic: string, payload: Buffer): TestingDeadLetter {
  const { content } = JSON.parse(payload.toString()) as { content: StoredDeadLetter };
  const { topic, offset, attempts, reason, message } = content;
  return { dispatcher: deadLetterTopic.slice(DEAD_LETTER_PREFIX.length), topic, offset, attempts, reason, content: message.content };
}
