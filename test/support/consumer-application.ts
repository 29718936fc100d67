import type { AddressInfo } from 'node:net';
import type { INestApplication, LoggerService, ModuleMetadata } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { ConsumerModule, type ConsumerModuleOptions } from '../../src/consumer/index.js';
import { SILENT } from './broker-application.js';

export interface ConsumerApplicationOptions {
  readonly consumer?: ConsumerModuleOptions;
  readonly adapter?: AbstractHttpAdapter;
  readonly metadata?: ModuleMetadata;
  /** Called before the application is initialised, as a main.ts would. */
  readonly configure?: (app: INestApplication) => void;
  readonly logger?: LoggerService;
  /** A free one by default. */
  readonly port?: number;
}

/** A real application with a consumer in it, listening on 127.0.0.1. */
export async function consumerApplication({
  consumer,
  adapter,
  metadata = {},
  configure,
  logger = SILENT,
  port = 0,
}: ConsumerApplicationOptions): Promise<{ app: INestApplication; url: string; port: number }> {
  const imports = [ConsumerModule.forRoot(consumer), ...(metadata.imports ?? [])];
  const module = await Test.createTestingModule({ ...metadata, imports })
    .setLogger(logger)
    .compile();
  const app = adapter === undefined ? module.createNestApplication({ logger }) : module.createNestApplication(adapter, { logger });
  configure?.(app);
  await app.listen(port, '127.0.0.1');
  const { port: taken } = app.getHttpServer().address() as AddressInfo;
  return { app, url: `http://127.0.0.1:${taken}`, port: taken };
}

export interface TestDelivery {
  readonly topic?: string;
  readonly offset?: number;
  readonly attempt?: number;
  /** Of a batch. */
  readonly count?: number;
}

/** The headers of a delivery, as a dispatcher sends them. */
export function deliveryHeaders({ topic = 'order.created', offset = 0, attempt = 1, count }: TestDelivery = {}): Record<string, string> {
  return {
    'content-type': 'application/json',
    'mmmq-dispatcher': 'orders',
    'mmmq-topic': topic,
    'mmmq-offset': String(offset),
    'mmmq-attempt': String(attempt),
    ...(count === undefined ? {} : { 'mmmq-count': String(count) }),
  };
}

/** A message as a broker stores it. */
export function storedMessage(content: unknown, { topic = 'order.created' }: TestDelivery = {}, members: object = {}): string {
  return JSON.stringify({ topic, content, ...members, timestamp: 1_767_225_600_000 });
}
