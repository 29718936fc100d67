/** The life of the registry of topic queues, which is that of the broker. It only ever goes forward. */
export const TopicQueueServiceState = {
  /** The log is not open yet; nothing can be published. */
  STARTING: 'starting',
  SERVING: 'serving',
  /** The application is going down: no more traffic should be sent here, but what comes is still taken. */
  STOPPING: 'stopping',
  /** Nothing more is taken. The log is closed as soon as what was taken has its answer. */
  CLOSING: 'closing',
  /** The log is closed. Where closing fails, this is never reached. */
  CLOSED: 'closed',
} as const;
export type TopicQueueServiceState = (typeof TopicQueueServiceState)[keyof typeof TopicQueueServiceState];
