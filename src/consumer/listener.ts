import type { TopicPattern } from '../core/index.js';
import type { MessageContext } from './message-context.js';
import type { MessageListenerOptions } from './message-listener.decorator.js';

/** A method that messages are handed to. */
export interface Listener {
  /** `OrdersService.onOrder` */
  readonly name: string;
  readonly patterns: readonly TopicPattern[];
  readonly options: MessageListenerOptions;
  /** @throws whatever the method throws, or what it returns is rejected with */
  call(content: unknown, context: MessageContext): Promise<void>;
}
