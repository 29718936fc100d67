import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { ErrorCode, MmmqError, systemClock } from '../core/index.js';
import { TopicQueueService } from '../topic-queue/index.js';
import { DispatcherGroup } from './dispatcher-group.js';
import { Dispatcher } from './dispatcher.js';

/**
 * All dispatchers of the application: those of `DispatcherModule` and those declared as providers in any module. It finds them when every
 * provider is made, before the topic queues are announced, and stops them before anything that they need is closed.
 */
@Injectable()
export class DispatcherRegistry implements OnModuleInit, OnModuleDestroy {
  private found: readonly Dispatcher[] = [];

  constructor(
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(TopicQueueService) private readonly topicQueues: TopicQueueService,
  ) {}

  get dispatchers(): readonly Dispatcher[] {
    return this.found;
  }

  /** The dispatcher of exactly this name, or undefined. */
  get(name: string): Dispatcher | undefined {
    return this.found.find((dispatcher) => dispatcher.name === name);
  }

  /** @throws {MmmqError} when two dispatchers have one name, also in another case: they would share their checkpoints */
  onModuleInit(): void {
    const found = this.discover();
    refuseEqualNames(found);
    for (const dispatcher of found) {
      dispatcher.attach({ topicQueues: this.topicQueues, clock: systemClock, random: Math.random });
    }
    this.found = found;
  }

  async onModuleDestroy(): Promise<void> {
    await Promise.all(this.found.map((dispatcher) => dispatcher.stop()));
  }

  /** Each object once, under however many tokens it is provided. */
  private discover(): readonly Dispatcher[] {
    const found = new Set<Dispatcher>();
    for (const wrapper of this.discovery.getProviders()) {
      // A provider that lives only for a request or for its user has no instance that could run.
      if (!wrapper.isDependencyTreeStatic() || wrapper.isTransient) continue;
      const instance: unknown = wrapper.instance;
      if (instance instanceof Dispatcher) found.add(instance);
      if (instance instanceof DispatcherGroup) for (const dispatcher of instance.dispatchers) found.add(dispatcher);
    }
    return [...found];
  }
}

function refuseEqualNames(dispatchers: readonly Dispatcher[]): void {
  const names = new Map<string, string>();
  for (const { name } of dispatchers) {
    const other = names.get(name.toLowerCase());
    if (other !== undefined) {
      throw new MmmqError(
        ErrorCode.INVALID_SETTINGS,
        `dispatchers "${other}" and "${name}" have one name when case is ignored and would share their checkpoints: rename one of them`,
      );
    }
    names.set(name.toLowerCase(), name);
  }
}
