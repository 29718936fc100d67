import type { AddressInfo } from 'node:net';
import type { INestApplication, LoggerService, ModuleMetadata } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Test } from '@nestjs/testing';
import { BrokerModule } from '../../src/broker/index.js';
import { type Engine, ENGINE } from '../../src/core/index.js';
import type { BrokerOptions } from '../../src/settings/index.js';
import type { FileSystem } from '../../src/storage/file-system/index.js';
import { FILE_SYSTEM } from '../../src/storage/storage.module.js';

export const SILENT: LoggerService = { log: () => undefined, error: () => undefined, warn: () => undefined };

export interface BrokerApplicationOptions {
  readonly broker?: BrokerOptions;
  /** Stands in for the files. */
  readonly engine?: Engine;
  /** Stands in for the disk. */
  readonly fileSystem?: FileSystem;
  readonly metadata?: ModuleMetadata;
  readonly application?: { readonly bodyParser?: boolean; readonly rawBody?: boolean; readonly abortOnError?: boolean };
  /** An adapter of the application's own, in place of a new ExpressAdapter. */
  readonly adapter?: AbstractHttpAdapter;
  /** Called before the application is initialised, as a main.ts would. */
  readonly configure?: (app: NestExpressApplication) => void;
  readonly logger?: LoggerService;
}

/** A real application with a broker in it, listening on a free port of 127.0.0.1. */
export async function brokerApplication(
  options: BrokerApplicationOptions = {},
): Promise<{ app: INestApplication; port: number; url: string }> {
  const { metadata = {}, engine, fileSystem, configure, logger = SILENT } = options;
  const builder = Test.createTestingModule({ ...metadata, imports: [BrokerModule.forRoot(options.broker), ...(metadata.imports ?? [])] });
  if (engine !== undefined) builder.overrideProvider(ENGINE).useValue(engine);
  if (fileSystem !== undefined) builder.overrideProvider(FILE_SYSTEM).useValue(fileSystem);
  const module = await builder.setLogger(logger).compile();
  const nest = { ...options.application, logger };
  const app =
    options.adapter === undefined
      ? module.createNestApplication<NestExpressApplication>(nest)
      : module.createNestApplication<NestExpressApplication>(options.adapter, nest);
  configure?.(app);
  await app.listen(0, '127.0.0.1');
  const { port } = app.getHttpServer().address() as AddressInfo;
  return { app, port, url: `http://127.0.0.1:${port}` };
}
