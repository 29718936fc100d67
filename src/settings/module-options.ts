import { resolve } from 'node:path';
import { camelCase, treeOf } from './settings-tree.js';
import { assertValid, SettingsValidation } from './settings.validation.js';
import type { BackoffSettings, BrokerSettings, DispatcherBatch, DispatcherSettings, MmmqSettings } from './settings.js';

/** Settings of which any may be left out; it then has its default. */
export type Partially<T> = { readonly [K in keyof T]?: (T[K] extends object ? Partially<T[K]> : T[K]) | undefined };

/** Options of `BrokerModule.forRoot`: `{ storage: { rootDir: './data' }, segment: { maxBytes: 64 * MiB } }`. */
export type BrokerOptions = Partially<BrokerSettings>;

/** One dispatcher of `DispatcherModule.forRoot`: name, host and patterns, and what shall differ from the defaults. */
export type DispatcherDefinition = Pick<DispatcherSettings, 'name' | 'host' | 'patterns'> &
  Partially<Pick<DispatcherSettings, 'timeoutMs' | 'maxResends'>> & {
    readonly backoff?: Partially<BackoffSettings> | undefined;
    readonly batch?: (Pick<DispatcherBatch, 'maxMessages'> & Partially<DispatcherBatch>) | undefined;
  };

/**
 * Checks the options of a broker and fills in the defaults, by the same rules as the settings file. `rootDir` comes back absolute.
 * @param origin who was given them, for the message: `BrokerModule.forRoot`
 * @throws {InvalidSettingsError} that names the options as they are spelled: `segment.maxBytes`
 */
export function brokerSettings(options: BrokerOptions, origin: string): BrokerSettings {
  const { broker } = validated({ broker: options }, origin, 2);
  return { ...broker, storage: { ...broker.storage, rootDir: resolve(broker.storage.rootDir) } };
}

/**
 * Checks the definitions of dispatchers and fills in the defaults, by the same rules as the settings file.
 * @param origin who was given them, for the message: `DispatcherModule.forRoot`
 * @throws {InvalidSettingsError} that names the options by their place in the list: `dispatchers[0].timeoutMs`
 */
export function dispatcherSettings(definitions: readonly DispatcherDefinition[], origin: string): readonly DispatcherSettings[] {
  return validated({ dispatchers: definitions }, origin, 1).dispatchers;
}

function validated(mmmq: object, origin: string, hiddenDepth: number): MmmqSettings {
  const tree = treeOf({ mmmq }, camelCase) as object;
  const { document, problems } = new SettingsValidation(tree, { spelling: camelCase, hiddenDepth, origin: () => origin });
  assertValid(problems);
  return document.mmmq;
}
