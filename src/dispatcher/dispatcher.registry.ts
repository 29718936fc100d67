import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { DEAD_LETTER_PREFIX, deadLetterTopic, ErrorCode, isDeadLetterTopic, MmmqError, systemClock } from '../core/index.js';
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

  /** Empty until the modules are initialized; those of the last run after the end. */
  get dispatchers(): readonly Dispatcher[] {
    return this.found;
  }

  /** The dispatcher of exactly this name, or undefined. */
  get(name: string): Dispatcher | undefined {
    return this.found.find((dispatcher) => dispatcher.name === name);
  }

  /**
   * The module of the topic queues is initialized before this one, which imports it: what is in the log is known.
   * @throws {MmmqError} when two dispatchers have one name, also in another case: they would share their checkpoints; when the dead letters
   * of a dispatcher lie in a topic that differs from its own only in case: it could not write any
   */
  onModuleInit(): void {
    const found = this.discover();
    refuseEqualNames(found);
    const topics = this.topicQueues.topicQueues().map(({ topic }) => topic);
    for (const { name } of found) refuseForeignDeadLetters(name, topics);
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

/** A dispatcher renamed in case alone would stand still at its first dead letter, whose topic cannot be made beside the old one. */
function refuseForeignDeadLetters(name: string, topics: readonly string[]): void {
  const own = deadLetterTopic(name);
  // Two directories that another program made are both served.
  if (topics.includes(own)) return;
  const other = topics.find((topic) => isDeadLetterTopic(topic) && topic.toLowerCase() === own.toLowerCase());
  if (other === undefined) return;
  throw new MmmqError(
    ErrorCode.INVALID_SETTINGS,
    `dispatcher "${name}" differs only in case from "${other.slice(DEAD_LETTER_PREFIX.length)}", whose dead letters are in the topic ${other}: ` +
      'use that name, or one that differs in more than case',
  );
}
