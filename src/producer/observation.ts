import type { LoggerService } from '@nestjs/common';
import type { ProducerObserver } from './producer.observer.js';

type EventName = keyof ProducerObserver;
type EventOf<Name extends EventName> = Parameters<NonNullable<ProducerObserver[Name]>>[0];

/** Tells the observer, and keeps what it throws from breaking anything. */
export class Observation {
  private hasFailed = false;

  constructor(
    private readonly observer: ProducerObserver,
    private readonly logger: LoggerService,
  ) {}

  tell<Name extends EventName>(name: Name, event: EventOf<Name>): void {
    try {
      const hook = this.observer[name] as ((event: EventOf<Name>) => unknown) | undefined;
      const result = hook?.call(this.observer, event);
      // An async method fits the type too, and a rejection that nobody hears ends the process.
      if (result instanceof Promise) result.catch(() => this.failed(name));
    } catch {
      this.failed(name);
    }
  }

  private failed(name: EventName): void {
    if (!this.hasFailed) this.logger.warn(`the observer of the producer has thrown in ${name}; this is said once`);
    this.hasFailed = true;
  }
}
