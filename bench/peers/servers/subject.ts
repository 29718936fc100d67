import type { Target } from '../generator/client.js';

/** In the order of the tables. */
export const PEERS = ['Redis Streams', 'NATS JetStream', 'RabbitMQ', 'PostgreSQL', 'pg-boss', 'BullMQ', 'Kafka'] as const;

export type PeerName = (typeof PEERS)[number];

/** With a sync before each answer, or as one gets it without a setting. */
export type Manner = 'synced' | 'as it comes';

/** A peer in one manner, ready to be measured. */
export interface Subject {
  readonly peer: PeerName;
  readonly manner: Manner;
  /** Of the server. */
  readonly version: string;
  /** Those of the server and of the queue, for the reader. */
  readonly settings: string;
  readonly target: Target;
}

/** What cannot be measured on this machine. */
export interface Missing {
  readonly name: string;
  readonly needs: string;
}

/** What came of the start of a server, or of several of a kind. */
export interface Started {
  readonly subjects: readonly Subject[];
  readonly missing: readonly Missing[];
}

/** As it stands in the tables. */
export function nameOf({ peer, manner }: Pick<Subject, 'peer' | 'manner'>): string {
  return `${peer}, ${manner}`;
}
