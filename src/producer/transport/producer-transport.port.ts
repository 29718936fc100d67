/** One request to the broker. */
export interface TransportRequest {
  /** Below the broker's URL. */
  readonly path: '/messages' | '/messages/batch';
  /** Lower-case names, all that is to be sent but the length. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Ends the attempt: it is to reject then, at once. */
  readonly signal: AbortSignal;
}

/** A whole answer, whatever its status. */
export interface TransportAnswer {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/**
 * How a producer speaks to its broker: `POST {broker}{path}`. A port, so that a test can stand in for the network.
 *
 * An implementation repeats nothing and follows no redirect: whether a request may be repeated is the producer's to know.
 */
export interface ProducerTransport {
  /** @throws {TransportError} there is no answer; any other error counts as one that was written */
  send(request: TransportRequest): Promise<TransportAnswer>;
  /** Lets go of its connections. Called by whoever made the transport. */
  close(): Promise<void>;
}
