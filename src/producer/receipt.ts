/** The broker has it: stored and synced there, at this offset of its topic. */
export interface AcknowledgedReceipt {
  readonly outcome: 'acknowledged';
  readonly topic: string;
  /** Of the message in its topic, from 0. For an id that the broker knew already, that of the first. */
  readonly offset: number;
  readonly id: string;
}

/**
 * The message is durable here, in the spool of this producer, and NOT acknowledged by the broker. It is sent, under its id, when the broker can
 * take it; there the broker may still refuse it, and then it goes to the dead file of the spool.
 */
export interface SpooledReceipt {
  readonly outcome: 'spooled';
  readonly topic: string;
  readonly id: string;
}

/** What became of a message that was produced. `outcome` tells the two apart; without a spool there is only the first. */
export type Receipt = AcknowledgedReceipt | SpooledReceipt;

/** What became of one message of a batch: its receipt, or the error that `produce` would have thrown. */
export type ProduceResult =
  { readonly receipt: Receipt; readonly error?: undefined } | { readonly error: unknown; readonly receipt?: undefined };
