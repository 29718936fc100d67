/**
 * Keeps work from being done twice for one message. Delivery is at least once: what was handled comes again when its ACK was lost.
 *
 * The id is made of the dispatcher, the topic, and the id of the message or, where it has none, its offset. A replay under another name of a
 * dispatcher is thus other work.
 */
export interface Deduplication {
  /**
   * Does the work unless it was done before under this id. Of two at once with one id, the second waits for the first.
   * @returns when the work is done, now or before
   * @throws what the work throws: it is then not remembered, and the message comes again
   */
  once(id: string, work: () => Promise<void>): Promise<void>;
}
