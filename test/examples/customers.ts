import type { Company } from './company.js';

/** How long the customers may be waited for before a test gives up on them. */
const PATIENCE_MS = 30_000;

/** So often in a row may the shop give no answer although it is there: a connection of before its restart is found dead only when it is used. */
const MAX_LOST = 20;

type Outcome = 'acknowledged' | 'spooled';

/** An order that the shop has answered for. */
export interface TakenOrder {
  readonly id: string;
  readonly customer: string;
  /** Counts the orders of the customer, who has waited for the answer to the one before. */
  readonly number: number;
  readonly topic: string;
  readonly outcome: Outcome;
  /** What the broker has acknowledged. */
  readonly offset: number | undefined;
}

interface Waiting {
  readonly isOver: () => boolean;
  readonly end: (error?: Error) => void;
}

/** Customers who order without a pause, each one order after the other, and send one again under its key that had no answer. */
export class Customers {
  readonly taken: TakenOrder[] = [];
  private readonly counts: Record<Outcome, number> = { acknowledged: 0, spooled: 0 };
  private readonly ordering: Promise<unknown>;
  private waiting: Waiting[] = [];
  private failure: Error | undefined;
  private isOver = false;

  constructor(
    private readonly company: Company,
    count: number,
  ) {
    this.ordering = Promise.all(Array.from({ length: count }, (_, customer) => this.orderOnAndOn(`customer${customer}`))).catch(
      (error: unknown) => {
        this.failure = error as Error;
        this.isOver = true;
        for (const { end } of this.waiting.splice(0)) end(this.failure);
      },
    );
  }

  get spooled(): number {
    return this.counts.spooled;
  }

  /** Waits until so many more orders are taken, with that outcome. @throws {Error} when a customer was refused, or it takes too long */
  async take(more: number, outcome: Outcome): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
    const enough = this.counts[outcome] + more;
    await new Promise<void>((resolve, reject) => {
      const patience = setTimeout(() => reject(new Error(`no ${more} orders were ${outcome} in ${PATIENCE_MS} ms`)), PATIENCE_MS);
      const end = (error?: Error): void => {
        clearTimeout(patience);
        if (error === undefined) resolve();
        else reject(error);
      };
      this.waiting.push({ isOver: () => this.counts[outcome] >= enough, end });
    });
  }

  /** The customers go home, each when the last order has its answer. @throws {Error} when one was refused */
  async goHome(): Promise<void> {
    this.isOver = true;
    await this.ordering;
    if (this.failure !== undefined) throw this.failure;
  }

  private async orderOnAndOn(customer: string): Promise<void> {
    for (let number = 0; !this.isOver; number += 1) {
      const id = `${customer}-${number}`;
      const { topic, outcome, offset } = await this.order(id, { item: 'tea', email: `${customer}@example.com`, express: number % 3 === 0 });
      this.taken.push({ id, customer, number, topic, outcome, offset });
      this.counts[outcome] += 1;
      for (const { end } of this.waiting.filter(({ isOver }) => isOver())) end();
      this.waiting = this.waiting.filter(({ isOver }) => !isOver());
    }
  }

  private async order(id: string, order: object): Promise<Pick<TakenOrder, 'topic' | 'outcome' | 'offset'>> {
    for (let lost = 0; ; lost += 1) {
      await this.company.shopIsOpen;
      const answer = await this.company.order(order, id).catch((error: unknown) => {
        if (lost === MAX_LOST) throw error;
      });
      if (answer === undefined) continue;
      if (answer.status !== 201) throw new Error(`the order ${id} was answered with ${answer.status} ${JSON.stringify(answer.body)}`);
      return answer.body as never;
    }
  }
}
