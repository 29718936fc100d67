/** The life of a topic queue. It only ever goes forward. */
export const TopicQueueState = {
  /** Takes messages. Whether the log behind it can store them is the log's own matter. */
  OPEN: 'open',
  /** Takes no more; what was taken before is still on its way. */
  CLOSING: 'closing',
  /** Nothing is on its way any more. */
  CLOSED: 'closed',
} as const;
export type TopicQueueState = (typeof TopicQueueState)[keyof typeof TopicQueueState];
