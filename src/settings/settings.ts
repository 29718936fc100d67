import 'reflect-metadata';
import { Transform, Type } from 'class-transformer';
import { IsArray, IsObject, IsOptional, ValidateNested } from 'class-validator';
import { SETTINGS, type SettingPath } from './settings.table.js';

/*
 * The settings as classes: property names in camel case, rules and defaults from the table. What is not a property here is no setting.
 */

/** Where the broker listens. */
export class ServerSettings {
  @Checked('server.host')
  readonly host: string = SETTINGS['server.host'].default;

  /** 0 takes any free port. */
  @Checked('server.port')
  readonly port: number = SETTINGS['server.port'].default;
}

export class StorageSettings {
  /** Directory of the messages. Absolute once validated: a relative path is resolved against the working directory. Default `./data`. */
  @Checked('mmmq.broker.storage.root-dir')
  readonly rootDir: string = SETTINGS['mmmq.broker.storage.root-dir'].default;

  /** Room in bytes that is kept for dead letters and checkpoints when the disk is full. Default 4 MiB; 0 keeps none. */
  @Checked('mmmq.broker.storage.reserve-bytes')
  readonly reserveBytes: number = SETTINGS['mmmq.broker.storage.reserve-bytes'].default;
}

export class SegmentSettings {
  /** A segment of at least so many bytes is closed before the next append. Default 64 MiB. */
  @Checked('mmmq.broker.segment.max-bytes')
  readonly maxBytes: number = SETTINGS['mmmq.broker.segment.max-bytes'].default;
}

export class MessageSettings {
  /** Largest request body of a publish, in bytes, inclusive. Default 1 MiB, at most 8 MiB. */
  @Checked('mmmq.broker.message.max-bytes')
  readonly maxBytes: number = SETTINGS['mmmq.broker.message.max-bytes'].default;
}

export class BatchSettings {
  /** Most messages of one batch. Default 10,000. */
  @Checked('mmmq.broker.batch.max-messages')
  readonly maxMessages: number = SETTINGS['mmmq.broker.batch.max-messages'].default;

  /** Largest request body of a batch, in bytes, inclusive. Default 16 MiB, at most 256 MiB. */
  @Checked('mmmq.broker.batch.max-bytes')
  readonly maxBytes: number = SETTINGS['mmmq.broker.batch.max-bytes'].default;
}

export class PendingSettings {
  /** Bytes of publishes received and not yet answered, in the whole broker. Default 64 MiB, at least the largest message and batch. */
  @Checked('mmmq.broker.pending.max-bytes')
  readonly maxBytes: number = SETTINGS['mmmq.broker.pending.max-bytes'].default;
}

export class BrokerSettings {
  @Group(() => StorageSettings)
  readonly storage: StorageSettings = new StorageSettings();

  @Group(() => SegmentSettings)
  readonly segment: SegmentSettings = new SegmentSettings();

  @Group(() => MessageSettings)
  readonly message: MessageSettings = new MessageSettings();

  @Group(() => BatchSettings)
  readonly batch: BatchSettings = new BatchSettings();

  @Group(() => PendingSettings)
  readonly pending: PendingSettings = new PendingSettings();
}

export class BackoffSettings {
  /** Wait before the first resend, in milliseconds, doubled for each further one. Default 1000. */
  @Checked('mmmq.dispatchers[].backoff.initial-ms')
  readonly initialMs: number = SETTINGS['mmmq.dispatchers[].backoff.initial-ms'].default;

  /** Longest wait, in milliseconds. Default 60000, at least `initialMs`. */
  @Checked('mmmq.dispatchers[].backoff.max-ms')
  readonly maxMs: number = SETTINGS['mmmq.dispatchers[].backoff.max-ms'].default;
}

/** Delivery in batches: how much one request may have. */
export interface DispatcherBatch {
  /** Most messages, 1 to 1000. */
  readonly maxMessages: number;
  /** Largest request body, in bytes. A message that is larger goes in a batch of one. Default 1 MiB, at most 16 MiB. */
  readonly maxBytes: number;
}

export class DispatcherBatchSettings implements DispatcherBatch {
  @Checked('mmmq.dispatchers[].batch.max-messages')
  readonly maxMessages!: number;

  @Checked('mmmq.dispatchers[].batch.max-bytes')
  readonly maxBytes: number = SETTINGS['mmmq.dispatchers[].batch.max-bytes'].default;
}

export class DispatcherSettings {
  /** Spelled as a topic, 100 characters at most, not beginning with `dlq.`, unique also when case is ignored. */
  @Checked('mmmq.dispatchers[].name')
  readonly name!: string;

  /** URL of the consumer: `http://localhost:8081`, perhaps with a path. */
  @Checked('mmmq.dispatchers[].host')
  readonly host!: string;

  /** Topic patterns, at least one: `order.**`. */
  @Checked('mmmq.dispatchers[].patterns')
  readonly patterns!: readonly string[];

  /** One attempt from connecting to the last byte of the answer, in milliseconds. Default 30000. */
  @Checked('mmmq.dispatchers[].timeout-ms')
  readonly timeoutMs: number = SETTINGS['mmmq.dispatchers[].timeout-ms'].default;

  /** How often a message is sent again after a NACK. Default 3. */
  @Checked('mmmq.dispatchers[].max-resends')
  readonly maxResends: number = SETTINGS['mmmq.dispatchers[].max-resends'].default;

  @Group(() => BackoffSettings)
  readonly backoff: BackoffSettings = new BackoffSettings();

  /** Left out, each message is delivered on its own. */
  @OptionalGroup(() => DispatcherBatchSettings)
  readonly batch?: DispatcherBatch | undefined;
}

export class MmmqSettings {
  @Group(() => BrokerSettings)
  readonly broker: BrokerSettings = new BrokerSettings();

  @Groups(() => DispatcherSettings)
  readonly dispatchers: readonly DispatcherSettings[] = [];
}

/** The shape of the settings file. */
export class SettingsDocument {
  @Group(() => ServerSettings)
  readonly server: ServerSettings = new ServerSettings();

  @Group(() => MmmqSettings)
  readonly mmmq: MmmqSettings = new MmmqSettings();
}

/** What the application starts with: every value valid, every default filled in. */
export interface Settings {
  readonly server: ServerSettings;
  readonly broker: BrokerSettings;
  readonly dispatchers: readonly DispatcherSettings[];
}

/** A value with the rule of its row in the table. */
function Checked(path: SettingPath): PropertyDecorator {
  return (target, property) => {
    for (const decorate of SETTINGS[path].rule.decorators) decorate(target, property);
  };
}

/** Settings that belong together. Given without content (`segment:` alone in YAML is null), all of them have their defaults. */
function Group(type: () => new () => object): PropertyDecorator {
  return (target, property) => {
    Type(type)(target, property);
    Transform(({ value }: { value: unknown }) => (value === null ? new (type())() : value))(target, property);
    IsObject({ message: 'must be a group of settings' })(target, property);
    ValidateNested()(target, property);
  };
}

/** Settings that need not be there as a group. Given without content, they are not. */
function OptionalGroup(type: () => new () => object): PropertyDecorator {
  return (target, property) => {
    Type(type)(target, property);
    Transform(({ value }: { value: unknown }) => value ?? undefined)(target, property);
    IsOptional()(target, property);
    IsObject({ message: 'must be a group of settings' })(target, property);
    ValidateNested()(target, property);
  };
}

/** A list of groups. Given without content, it is empty. */
function Groups(type: () => new () => object): PropertyDecorator {
  return (target, property) => {
    Type(type)(target, property);
    Transform(({ value }: { value: unknown }) => value ?? [])(target, property);
    IsArray({ message: 'must be a list of groups of settings' })(target, property);
    IsObject({ each: true, message: 'must be a group of settings' })(target, property);
    ValidateNested()(target, property);
  };
}
