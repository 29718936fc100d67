/** So many messages are looked at for one write, however many wait. */
const GROUP_MAX_COUNT = 16_384;

interface WaitingMessage {
  readonly kind: 'message';
  readonly bytes: Uint8Array;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

interface WaitingTask {
  readonly kind: 'task';
  /** Never rejects. */
  readonly run: () => Promise<void>;
}

/** What the line writes to. */
export interface MessageSink {
  /** @returns how many of the messages go into the next write; at least one */
  prepare(messages: readonly Uint8Array[]): Promise<number>;
  /** Writes them all, or throws and writes none. */
  write(messages: readonly Uint8Array[]): Promise<void>;
}

/**
 * The line of all that changes the disk: one at a time, in the order of arrival. Messages that wait one behind the other share a write.
 */
export class WorkLine {
  private waiting: (WaitingMessage | WaitingTask)[] = [];
  private isWorking = false;
  private isEnded = false;

  /** @param refusal what those get who come behind the {@link end} */
  constructor(
    private readonly sink: MessageSink,
    private readonly refusal: () => Error,
  ) {}

  /** Joins the line before this returns. @returns when the message is written */
  write(bytes: Uint8Array): Promise<void> {
    if (this.isEnded) return Promise.reject(this.refusal());
    return new Promise((resolve, reject) => this.join({ kind: 'message', bytes, resolve, reject }));
  }

  /** Does the task when all that came before it is done. */
  run(task: () => Promise<void>): Promise<void> {
    if (this.isEnded) return Promise.reject(this.refusal());
    return new Promise((resolve, reject) => this.join({ kind: 'task', run: () => task().then(resolve, reject) }));
  }

  /** Does the last task of all. */
  end(task: () => Promise<void>): Promise<void> {
    const ended = this.run(task);
    this.isEnded = true;
    return ended;
  }

  private join(work: WaitingMessage | WaitingTask): void {
    this.waiting.push(work);
    if (!this.isWorking) void this.work();
  }

  private async work(): Promise<void> {
    this.isWorking = true;
    // Those that join in the same go share the first write.
    await undefined;
    for (let next = this.waiting[0]; next !== undefined; next = this.waiting[0]) {
      if (next.kind === 'message') await this.writeGroup();
      else {
        this.waiting.shift();
        await next.run();
      }
    }
    this.isWorking = false;
  }

  /** Never throws: everybody gets an answer and the line moves on. What could not be prepared concerns all who wait. */
  private async writeGroup(): Promise<void> {
    let group = this.firstMessages();
    try {
      const count = await this.sink.prepare(group.map(({ bytes }) => bytes));
      group = group.slice(0, count);
      await this.sink.write(group.map(({ bytes }) => bytes));
      this.waiting.splice(0, group.length);
      for (const { resolve } of group) resolve();
    } catch (error) {
      this.waiting.splice(0, group.length);
      for (const { reject } of group) reject(error);
    }
  }

  private firstMessages(): WaitingMessage[] {
    const messages: WaitingMessage[] = [];
    for (const work of this.waiting) {
      if (work.kind === 'task' || messages.length === GROUP_MAX_COUNT) break;
      messages.push(work);
    }
    return messages;
  }
}
