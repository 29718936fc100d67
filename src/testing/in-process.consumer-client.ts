import { setImmediate } from 'node:timers/promises';
import type { ConsumerEndpoint } from '../consumer/index.js';
import type { ConsumerClient, ConsumerReply, ConsumerRequest } from '../dispatcher/index.js';
import type { ConsumerFault, ConsumerFaults } from './consumer-fault.js';
import { deliveriesOf, type TestingDelivery } from './testing-delivery.js';
import type { TestingClock } from './testing.clock.js';

export interface InProcessConsumerClientParts {
  readonly endpoint: Pick<ConsumerEndpoint, 'deliver'>;
  readonly clock: TestingClock;
  readonly faults: ConsumerFaults;
  readonly onDelivery: (delivery: TestingDelivery) => void;
}

/** Hands deliveries to the consumer of an application in the same process: the port's promises hold, with the clock of the test. */
export class InProcessConsumerClient implements ConsumerClient {
  private readonly underWay = new Set<Promise<ConsumerReply>>();

  constructor(private readonly parts: InProcessConsumerClientParts) {}

  /** Resolves when all attempts that are under way now have their answers. */
  async settled(): Promise<void> {
    await Promise.all(this.underWay);
  }

  get isIdle(): boolean {
    return this.underWay.size === 0;
  }

  async post(request: ConsumerRequest): Promise<ConsumerReply> {
    const { faults, clock, onDelivery } = this.parts;
    const fault = faults.take(String(request.headers['mmmq-topic']));
    const attempt = fault === undefined ? this.exchange(request) : this.fail(fault, request);
    this.underWay.add(attempt);
    try {
      const reply = await attempt;
      for (const delivery of deliveriesOf(request, reply, clock.now())) onDelivery(delivery);
      return reply;
    } finally {
      this.underWay.delete(attempt);
    }
  }

  async close(): Promise<void> {}

  private exchange(request: ConsumerRequest): Promise<ConsumerReply> {
    const { clock } = this.parts;
    const gone = new AbortController();
    const answered = new AbortController();
    return new Promise<ConsumerReply>((resolve) => {
      const settle = (reply: ConsumerReply): void => {
        answered.abort();
        if (reply.kind === 'failure') gone.abort(new Error(reply.reason));
        resolve(reply);
      };
      const fail = (reason: string): void => {
        if (!answered.signal.aborted) settle({ kind: 'failure', reason });
      };
      void clock.sleep(request.timeoutMs, answered.signal).then(() => fail(lateReason(request)));
      request.signal.addEventListener('abort', () => fail('broker is stopping'), { once: true, signal: answered.signal });
      void this.deliver(request, gone.signal).then((reply) => (answered.signal.aborted ? undefined : settle(reply)));
    });
  }

  private async fail(fault: ConsumerFault, request: ConsumerRequest): Promise<ConsumerReply> {
    switch (fault.kind) {
      case 'refused':
        return { kind: 'failure', reason: 'connection refused (ECONNREFUSED)' };
      case 'timeout': {
        const gone = new AbortController();
        const late = this.deliver(request, gone.signal);
        // So that the listener has begun.
        await setImmediate();
        gone.abort(new Error('the dispatcher has closed the connection'));
        await late;
        this.parts.clock.advance(request.timeoutMs);
        return { kind: 'failure', reason: lateReason(request) };
      }
      case 'answerLost':
        await this.deliver(request, new AbortController().signal);
        return { kind: 'failure', reason: 'connection reset (ECONNRESET)' };
      case 'status': {
        const { status, retryAfterSeconds } = fault;
        return { kind: 'answer', status, body: Buffer.from(''), retryAfter: retryAfterSeconds?.toString() };
      }
      case 'garbage':
        return { kind: 'answer', status: 200, body: Buffer.from('<html>It works!</html>') };
    }
  }

  private async deliver({ path, headers, body, maxAnswerBytes }: ConsumerRequest, signal: AbortSignal): Promise<ConsumerReply> {
    // As on any network, so that a test that delivers without end, as a listener produces what it listens to, can still come to its time-out.
    await setImmediate();
    try {
      const answer = await this.parts.endpoint.deliver({ isBatch: path.endsWith('/batch'), headers, body, signal });
      const bytes = Buffer.from(answer.body);
      if (bytes.length > maxAnswerBytes) return { kind: 'failure', reason: `answer larger than ${maxAnswerBytes} bytes` };
      return { kind: 'answer', status: answer.status, body: bytes, retryAfter: answer.headers?.['retry-after']?.toString() };
    } catch (error) {
      return { kind: 'failure', reason: `the consumer failed unexpectedly (${String(error)})` };
    }
  }
}

function lateReason({ timeoutMs }: ConsumerRequest): string {
  return `no answer within ${timeoutMs} ms`;
}
