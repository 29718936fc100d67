/** What is measured: a server, by one of its clients. Goes to the generator as JSON. */
export interface Target {
  readonly client: ClientName;
  readonly port: number;
  /** Whose CPU time is counted, with all processes below it. */
  readonly pid: number;
  /** For clients that ask for it with each queue or topic. */
  readonly isSynced: boolean;
  /** For the broker alone: where its dispatcher finds the consumer. */
  readonly consumerPort?: number;
}

export type ClientName = 'broker' | 'redis-streams' | 'nats' | 'rabbitmq' | 'postgresql' | 'pg-boss' | 'bullmq' | 'kafka';

/**
 * A peer in the hands of its client library. Whatever the peer keeps messages in (stream, queue, table, topic) is new and empty when the
 * client is made. Every failure rejects, or ends the process.
 */
export interface Client {
  /** One message. Resolves when the peer has said that it has it. */
  publish(number: number): Promise<unknown>;
  /** Several, in the way that the peer is best at. Resolves when the peer has said that it has all of them. */
  publishMany(numbers: readonly number[]): Promise<unknown>;
  /** Takes messages, and tells the numbers of those whose verdict the peer has. Missing where deliveries are not measured. */
  consume?(committed: Committed): Promise<void>;
  /** Removes all messages, waits for what the peer does in its background, and leaves nothing to be done later. */
  remove(): Promise<void>;
}

export type Committed = (numbers: readonly number[]) => void;

/** How many publishes, or batches of them, are under way at once: what a client may size its pool for. */
export type ConnectTo = (target: Target, concurrency: number) => Promise<Client>;
