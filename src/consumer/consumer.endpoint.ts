import { Logger, type OnApplicationBootstrap, type OnModuleDestroy } from '@nestjs/common';
import { Acknowledgement, type Clock, systemClock, Turns } from '../core/index.js';
import { type HttpAnswer, refusalAnswer } from '../http-route/index.js';
import type { ConsumerSettings } from './consumer.options.js';
import { type Delivery, type DeliveryHeaders, DeliveryRefused, readBatch, readDelivery } from './delivery.reader.js';
import { ListenerCaller } from './listener.caller.js';
import type { ListenerExplorer } from './listener.explorer.js';
import { ListenerTable } from './listener.table.js';
import type { Verdict } from './verdict.js';

/** A request of a dispatcher. */
export interface DeliveryRequest {
  /** Whether the body is a JSON array of messages, and not one message. */
  readonly isBatch: boolean;
  readonly headers: DeliveryHeaders;
  readonly body: Buffer;
  /** Ends when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

const State = {
  /** Not all providers are there, and no listener is known. */
  STARTING: 'starting',
  LISTENING: 'listening',
  /** What is being handled comes to its end, nothing else is begun. */
  STOPPING: 'stopping',
} as const;
type State = (typeof State)[keyof typeof State];

/** How long a stop lets listeners come to their end before their signal ends. */
const STOP_GRACE_MS = 5_000;
/** How long a stop waits for them from then on. */
const ABORT_GRACE_MS = 1_000;

const ACK = JSON.stringify({ acknowledgement: Acknowledgement.ACK });
/** For what can be tried again as soon as the dispatcher likes. */
const SOON_MS = 1_000;

/**
 * Takes deliveries and answers them: the two routes behind their bodies and guards. Of use for a transport of one's own, and for tests:
 *
 *     await app.get(ConsumerEndpoint).deliver({ isBatch: false, headers, body, signal })
 *
 * So many are handled at a time as `concurrency` says; the others wait in the order in which they came, and leave when their client does.
 */
export class ConsumerEndpoint implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly logger = new Logger('Consumer');
  private readonly turns: Turns;
  private readonly waiting = new Set<AbortController>();
  private readonly handling = new Set<AbortController>();
  private state: State = State.STARTING;
  private caller: ListenerCaller | undefined;
  private allHandled: (() => void) | undefined;

  /** @internal */
  constructor(
    private readonly settings: ConsumerSettings,
    private readonly explorer: ListenerExplorer,
    private readonly clock: Clock = systemClock,
  ) {
    this.turns = new Turns(settings.concurrency);
  }

  /** Whether its listeners are known and called: from the start of the application to its stop. */
  get isListening(): boolean {
    return this.state === State.LISTENING;
  }

  /** Whether the application goes down: its clients should look for another connection. */
  get isStopping(): boolean {
    return this.state === State.STOPPING;
  }

  /** Finds the listeners. @throws {MmmqError} when they cannot be told apart, or have no instance */
  onApplicationBootstrap(): void {
    const table = new ListenerTable(this.explorer.explore());
    for (const { name, patterns } of table.listeners) this.logger.log(`${name} listens to ${patterns.join(', ')}`);
    if (table.listeners.length === 0)
      this.logger.warn('no provider has a method with @MessageListener: is the class that has it among the providers of a module?');
    this.caller = new ListenerCaller(table, this.settings);
    if (this.state === State.STARTING) this.state = State.LISTENING;
  }

  /** Nothing is begun any more; what is being handled has 5 s, then its signal ends. */
  async onModuleDestroy(): Promise<void> {
    this.state = State.STOPPING;
    for (const ending of this.waiting) ending.abort(new Error('the application stops'));
    if (await this.isHandledWithin(STOP_GRACE_MS)) return;
    for (const ending of this.handling) ending.abort(new Error('the application stops'));
    if (await this.isHandledWithin(ABORT_GRACE_MS)) return;
    this.logger.warn(`${this.handling.size} deliveries did not come to their end in time`);
  }

  /** Never throws for what a listener does. */
  async deliver(request: DeliveryRequest): Promise<HttpAnswer> {
    const { caller } = this;
    if (!this.isListening || caller === undefined) return this.unavailable();
    try {
      const delivery = request.isBatch ? readBatch(request.headers, request.body) : readDelivery(request.headers, request.body);
      const handle = request.isBatch ? handleBatch : handleOne;
      return await this.inTurn(request.signal, (signal) => handle(caller, delivery, signal, () => this.isStopping));
    } catch (error) {
      if (!(error instanceof DeliveryRefused)) throw error;
      this.logger.warn(`a delivery is refused with status ${error.status}, and will come again: ${error.message}`);
      return refusalAnswer(error);
    }
  }

  private async inTurn(clientSignal: AbortSignal, work: (signal: AbortSignal) => Promise<HttpAnswer>): Promise<HttpAnswer> {
    const ending = new AbortController();
    const end = (): void => ending.abort(clientSignal.reason);
    clientSignal.addEventListener('abort', end, { once: true });
    if (clientSignal.aborted) end();
    let hasTurn = false;
    const inTurn = async (): Promise<HttpAnswer> => {
      hasTurn = true;
      this.waiting.delete(ending);
      this.handling.add(ending);
      return await work(ending.signal);
    };
    this.waiting.add(ending);
    try {
      return await this.turns.take(inTurn, { signal: ending.signal });
    } catch (error) {
      if (hasTurn) throw error;
      return this.isListening ? this.tooLate() : this.unavailable();
    } finally {
      clientSignal.removeEventListener('abort', end);
      this.waiting.delete(ending);
      this.handling.delete(ending);
      if (this.handling.size === 0) this.allHandled?.();
    }
  }

  private async isHandledWithin(ms: number): Promise<boolean> {
    if (this.handling.size === 0) return true;
    const handled = new AbortController();
    this.allHandled = () => handled.abort();
    await this.clock.sleep(ms, handled.signal);
    return handled.signal.aborted;
  }

  /** Its dispatcher is gone and sees no answer, so the log has to say it. */
  private tooLate(): HttpAnswer {
    const outlived = [...this.handling].filter(({ signal }) => signal.aborted).length;
    this.logger.warn(
      `a delivery had no turn before its dispatcher was gone, and will come again: ${this.handling.size} are being handled, as many as may be at a ` +
        `time (option concurrency), and ${outlived} of them go on though their signal has ended`,
    );
    return answerOf({ kind: 'later', ms: SOON_MS, reason: 'too many deliveries are being handled; send it again later' });
  }

  private unavailable(): HttpAnswer {
    const reason = `the application is ${this.state === State.STARTING ? 'starting' : 'stopping'}; send it again later`;
    return answerOf({ kind: 'later', ms: SOON_MS, reason });
  }
}

async function handleOne(caller: ListenerCaller, delivery: Delivery, signal: AbortSignal): Promise<HttpAnswer> {
  return answerOf(await caller.handle(delivery, 0, signal));
}

/**
 * In order, up to the first message that is not acknowledged: what stands behind that one comes again anyhow. A message that cannot have its verdict
 * in the array, since only the status can tell of it, ends the array in front of it; it is the first one of the next batch, and then says so.
 */
async function handleBatch(
  caller: ListenerCaller,
  delivery: Delivery,
  signal: AbortSignal,
  isStopping: () => boolean,
): Promise<HttpAnswer> {
  const verdicts: string[] = [];
  for (const index of delivery.messages.keys()) {
    if (index > 0 && (signal.aborted || isStopping())) break;
    const verdict = await verdictOn(caller, delivery, index, signal);
    if (verdict?.kind === 'later' && index === 0) return answerOf(verdict);
    if (verdict === undefined || verdict.kind === 'later') break;
    verdicts.push(bodyOf(verdict));
    if (verdict.kind !== 'ack') break;
  }
  return { status: 200, body: `[${verdicts.join()}]` };
}

async function verdictOn(caller: ListenerCaller, delivery: Delivery, index: number, signal: AbortSignal): Promise<Verdict | undefined> {
  try {
    return await caller.handle(delivery, index, signal);
  } catch (error) {
    if (index === 0 || !(error instanceof DeliveryRefused)) throw error;
    return undefined;
  }
}

function answerOf(verdict: Verdict): HttpAnswer {
  const body = bodyOf(verdict);
  if (verdict.kind !== 'later') return { status: 200, body };
  const { ms } = verdict;
  return { status: 503, body, headers: ms === undefined ? {} : { 'retry-after': String(Math.ceil(ms / 1000)) } };
}

function bodyOf(verdict: Verdict): string {
  if (verdict.kind === 'ack') return ACK;
  const { reason } = verdict;
  const isFinal = verdict.kind === 'nack' && !verdict.retry;
  return JSON.stringify({ acknowledgement: Acknowledgement.NACK, ...(isFinal ? { retry: false } : {}), reason });
}
