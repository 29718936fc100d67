/** What a listener is told of its message, beside the content. */
export interface MessageContext {
  readonly topic: string;
  /** Where the message is in its topic. Together with the topic it names the message for ever. */
  readonly offset: number;
  /** Which send of this message it is, from 1; it begins again when the broker starts. In a batch, that of its first message. */
  readonly attempt: number;
  /** The name of the dispatcher that sends it. */
  readonly dispatcher: string;
  /** The id that the producer gave: the same message again has the same one. */
  readonly id: string | undefined;
  /** The ordering key that the producer gave. */
  readonly key: string | undefined;
  /** The headers that the producer gave; without a prototype. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** When the broker stored it, in epoch milliseconds; undefined where another program wrote it without. */
  readonly timestamp: number | undefined;
  /** W3C Trace Context, as the producer sent it. */
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
  /**
   * Ends when nobody waits for the answer any more: the time of the dispatcher is up, or it was stopped. Also when the application stops and the
   * listener has had its 5 s. Hand it on to whatever takes long: `fetch(url, { signal })`.
   */
  readonly signal: AbortSignal;
}
