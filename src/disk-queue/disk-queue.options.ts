import { resolve } from 'node:path';
import type { LoggerService } from '@nestjs/common';
import { InvalidValueError, type Clock } from '../core/index.js';
import type { FileSystem } from '../storage/file-system/index.js';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** How a queue is opened. Only `dir` and `name` have to be given. */
export interface DiskQueueOptions {
  /**
   * The directory of the files: made where it is missing, held by this process alone. Several queues can be in one.
   */
  readonly dir: string;
  /** What the files begin with: 1 to 200 of the letters A to Z in either case, digits, and `. _ - : #`. */
  readonly name: string;
  /**
   * A file takes no more than so many bytes, but for one that a single message fills: 1 to 1 TiB; 100 MiB by default. It can be another one at
   * the next start.
   */
  readonly maxBytesPerFile?: number | undefined;
  /**
   * The least a message may have, in bytes: 0 to 1 GiB; 1 by default. A shorter one is refused, and in a file it is corruption: with 0, zeros
   * are messages.
   */
  readonly minMessageBytes?: number | undefined;
  /**
   * The most a message may have, in bytes: 1 to 1 GiB; 1 MiB by default. A longer one is refused, and in a file it is corruption: what was put
   * must have been read before this is made smaller.
   */
  readonly maxMessageBytes?: number | undefined;
  /**
   * Everything is synced at every so many messages put and removed: 1 to 1,000,000; 2500 by default. A power cut loses fewer than so many. With
   * 1, `put` and `confirm` resolve when they are durable.
   */
  readonly syncEvery?: number | undefined;
  /** Nothing waits longer than so many milliseconds for a sync to begin: 1 to 3,600,000; 2000 by default. */
  readonly syncTimeoutMs?: number | undefined;
  /** The disk, for tests: the real one by default. */
  readonly fileSystem?: FileSystem | undefined;
  /** Hears of what was found, repaired, set aside and could not be synced: Nest's logger by default. */
  readonly logger?: LoggerService | undefined;
  /** @internal for tests: the system's by default */
  readonly clock?: Clock | undefined;
}

/** The options with all defaults, checked. */
export interface DiskQueueSettings {
  /** Absolute. */
  readonly dir: string;
  readonly name: string;
  readonly maxBytesPerFile: number;
  readonly minMessageBytes: number;
  readonly maxMessageBytes: number;
  readonly syncEvery: number;
  readonly syncTimeoutMs: number;
}

const NUMBERS = {
  maxBytesPerFile: { min: 1, max: 1024 * GIB, byDefault: 100 * MIB },
  minMessageBytes: { min: 0, max: GIB, byDefault: 1 },
  maxMessageBytes: { min: 1, max: GIB, byDefault: MIB },
  syncEvery: { min: 1, max: 1_000_000, byDefault: 2500 },
  syncTimeoutMs: { min: 1, max: 3_600_000, byDefault: 2000 },
} as const;

const NAME = /^[A-Za-z0-9._:#-]{1,200}$/;

/** @throws {InvalidValueError} naming the option, its value and the rule that it breaks */
export function diskQueueSettings(options: DiskQueueOptions): DiskQueueSettings {
  const { dir, name } = options;
  if (typeof dir !== 'string' || dir === '') throw broken('dir', dir, 'must be the path of a directory');
  if (typeof name !== 'string' || !NAME.test(name))
    throw broken('name', name, 'must be 1 to 200 of the letters A to Z in either case, digits, and . _ - : #');
  const settings = {
    dir: resolve(dir),
    name,
    maxBytesPerFile: numberOf(options, 'maxBytesPerFile'),
    minMessageBytes: numberOf(options, 'minMessageBytes'),
    maxMessageBytes: numberOf(options, 'maxMessageBytes'),
    syncEvery: numberOf(options, 'syncEvery'),
    syncTimeoutMs: numberOf(options, 'syncTimeoutMs'),
  };
  if (settings.minMessageBytes > settings.maxMessageBytes)
    throw broken('minMessageBytes', settings.minMessageBytes, `must not be above maxMessageBytes, which is ${settings.maxMessageBytes}`);
  return settings;
}

function numberOf(options: DiskQueueOptions, key: keyof typeof NUMBERS): number {
  const { min, max, byDefault } = NUMBERS[key];
  const value = options[key] ?? byDefault;
  if (!Number.isSafeInteger(value) || value < min || value > max) throw broken(key, value, `must be a whole number from ${min} to ${max}`);
  return value;
}

function broken(key: string, value: unknown, rule: string): InvalidValueError {
  return new InvalidValueError(`the option ${key} of DiskQueue`, String(value), rule);
}
