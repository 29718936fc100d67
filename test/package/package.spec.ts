import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { nodeProcesses } from '../support/node-process.js';
import { temporaryDirectories } from '../support/temporary-directory.js';

const REPOSITORY = join(import.meta.dirname, '../..');
const TIMEOUT_MS = 120_000;

const TSCONFIG = {
  compilerOptions: {
    target: 'ES2023',
    module: 'nodenext',
    moduleResolution: 'nodenext',
    types: ['node'],
    strict: true,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    // So that the declarations of the package are checked as well: one that is not there, or speaks of one that is not, shows here.
    skipLibCheck: false,
    rootDir: 'src',
    outDir: 'dist',
  },
  include: ['src'],
};

const SPOOL = `
  import { DiskQueue, DiskQueueModule, FileError, type DiskQueueOptions, type InFlightMessage } from 'mmmq/disk-queue';

  const options: DiskQueueOptions = { dir: 'spool', name: 'orders', syncEvery: 1 };
  const queue: DiskQueue = await DiskQueue.open(options);
  await Promise.all(['first', 'second'].map((text) => queue.put(Buffer.from(text))));
  for (let item: InFlightMessage | undefined; (item = await queue.takeInFlight()) !== undefined; await item.confirm())
    console.log(item.bytes.toString());
  console.log(queue.depth);
  await queue.close().catch((error: unknown) => console.error(error instanceof FileError ? error.path : error));
  DiskQueueModule.forRoot([options]);
`;

const LISTENER = `
  import 'reflect-metadata';
  import { Injectable, Module } from '@nestjs/common';
  import { NestFactory } from '@nestjs/core';
  import { ConsumerModule, InMemoryDeduplication, MessageListener, Reject, type MessageContext } from 'mmmq/consumer';

  @Injectable()
  class Mailer {
    @MessageListener('order.**')
    onOrder(order: { id: number }, { topic, offset }: MessageContext): void {
      console.log(topic, offset, order.id);
      throw new Reject('enough');
    }
  }

  @Module({ imports: [ConsumerModule.forRoot({ deduplication: new InMemoryDeduplication() })], providers: [Mailer] })
  class AppModule {}

  const app = await NestFactory.create(AppModule, { logger: false });
  await app.listen(0, '127.0.0.1');
  const headers = { 'content-type': 'application/json', 'mmmq-dispatcher': 'd', 'mmmq-topic': 'order.created', 'mmmq-offset': '7', 'mmmq-attempt': '1' };
  const answer = await fetch(\`\${await app.getUrl()}/messages\`, { method: 'POST', headers, body: '{"topic":"order.created","content":{"id":1}}' });
  console.log(await answer.text());
  await app.close();
`;

const PRODUCE = `
  import { createServer } from 'node:http';
  import type { AddressInfo } from 'node:net';
  import { Producer, ProducerModule, ProduceRefusedError, rawJson, type ProducerOptions, type Receipt } from 'mmmq/producer';

  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end('{"acknowledgement":"ACK","topic":"order.created","offset":41}'));
  }).listen(0, '127.0.0.1', async () => {
    const { port } = server.address() as AddressInfo;
    const options: ProducerOptions = { broker: \`http://127.0.0.1:\${port}\`, spool: { dir: 'spool' } };
    const producer: Producer = await Producer.open(options);
    const receipt: Receipt = await producer.produce('order.created', rawJson('{"amount":1.0}'));
    console.log(receipt.outcome === 'acknowledged' ? receipt.offset : receipt.outcome);
    const error: unknown = await producer.produce('order created', 1).catch((failure: unknown) => failure);
    console.log(error instanceof ProduceRefusedError ? error.field : error);
    await producer.close();
    server.close();
    ProducerModule.forRoot({ ...options, global: true });
  });
`;

const TESTED = `
  import 'reflect-metadata';
  import { Injectable, Module } from '@nestjs/common';
  import { Test } from '@nestjs/testing';
  import { ConsumerModule, MessageListener } from 'mmmq/consumer';
  import { Producer, ProducerModule } from 'mmmq/producer';
  import { TestingBroker, type ConsumerFault, type TestingDelivery } from 'mmmq/testing';

  @Injectable()
  class Mailer {
    @MessageListener('order.**')
    onOrder(): void {}
  }

  @Module({ imports: [ProducerModule.forRoot({ broker: 'http://broker:8080' }), ConsumerModule.forRoot()], providers: [Mailer] })
  class AppModule {}

  const broker: TestingBroker = await TestingBroker.start();
  const module = await broker.compile(Test.createTestingModule({ imports: [AppModule] }));
  await module.init();
  const fault: ConsumerFault = { kind: 'timeout' };
  broker.injectFault(fault);
  await module.get(Producer).produce('order.created', { id: 7 });
  await broker.drain();
  console.log(broker.deliveries.map(({ attempt, verdict }: TestingDelivery) => [attempt, verdict].join(' ')).join());
  await module.close();
  await broker.close();
`;

const run = promisify(execFile);
const newDirectory = temporaryDirectories();
const start = nodeProcesses();

interface Manifest {
  readonly dependencies: Record<string, string>;
  readonly peerDependencies: Record<string, string>;
}

/** Packs the package as npm does for a release. @returns the path of the tarball */
async function pack(dir: string): Promise<string> {
  if (!existsSync(join(REPOSITORY, 'dist/index.js'))) throw new Error('dist is missing: run "npm test", or first "npm run build"');
  const { stdout } = await run(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--pack-destination', dir, '--cache', join(dir, 'npm-cache')],
    {
      cwd: REPOSITORY,
    },
  );
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  return join(dir, filename);
}

/**
 * Installs the tarball into an application as npm would, only without a registry: its files are the packed ones, and what it declares as
 * dependencies and peers, and nothing else, stands beside it, linked from this repository.
 */
async function install(tarball: string, app: string): Promise<string> {
  const modules = join(app, 'node_modules');
  const unpacked = join(modules, 'mmmq');
  await mkdir(unpacked, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', unpacked, '--strip-components=1']);
  const { dependencies, peerDependencies } = JSON.parse(await readFile(join(unpacked, 'package.json'), 'utf8')) as Manifest;
  for (const name of [...Object.keys(dependencies), ...Object.keys(peerDependencies), '@types/node']) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(REPOSITORY, 'node_modules', name), join(modules, name), 'junction');
  }
  return unpacked;
}

/** An application that somebody else would write: an empty folder, its own package.json, and the package installed. */
describe('the package, installed from its tarball', () => {
  let app: string;
  let unpacked: string;

  beforeEach(async () => {
    app = await newDirectory();
    await writeFile(join(app, 'package.json'), JSON.stringify({ name: 'its-user', private: true, type: 'module' }));
    unpacked = await install(await pack(await newDirectory()), app);
  }, TIMEOUT_MS);

  it(
    'is type-checked, compiled and run in a Nest application, which publishes, receives and ends with 0',
    async () => {
      for (const example of ['demo', 'orders'])
        await cp(join(REPOSITORY, 'examples', example), join(app, 'src', example), { recursive: true });
      expect(await compile(app)).toEqual([]);

      const demo = start(join(app, 'dist/demo/main.js'), { cwd: app, env: { TMPDIR: await newDirectory() } });
      await demo.printed(/arrived {3}order\.created offset 1: .*\n/);
      expect(await demo.end('SIGINT')).toEqual({ code: 0, signal: null });
      expect(demo.errors).toBe('');
    },
    TIMEOUT_MS,
  );

  it(
    'has a disk queue that is of use alone, type-checked, compiled and run',
    async () => {
      await mkdir(join(app, 'src'), { recursive: true });
      await writeFile(join(app, 'src/spool.ts'), SPOOL);
      expect(await compile(app)).toEqual([]);
      const spool = start(join(app, 'dist/spool.js'), { cwd: app });
      expect(await spool.ended()).toEqual({ code: 0, signal: null });
      expect(spool.output).toBe('first\nsecond\n0\n');
    },
    TIMEOUT_MS,
  );

  it(
    'has a producer that is of use alone, type-checked, compiled and run',
    async () => {
      await mkdir(join(app, 'src'), { recursive: true });
      await writeFile(join(app, 'src/produce.ts'), PRODUCE);
      expect(await compile(app)).toEqual([]);
      const produce = start(join(app, 'dist/produce.js'), { cwd: app });
      expect(await produce.ended()).toEqual({ code: 0, signal: null });
      expect(produce.output).toBe('41\ntopic\n');
    },
    TIMEOUT_MS,
  );

  it(
    'has a consumer that is type-checked, compiled and run in a Nest application',
    async () => {
      await mkdir(join(app, 'src'), { recursive: true });
      await writeFile(join(app, 'src/listener.ts'), LISTENER);
      expect(await compile(app)).toEqual([]);
      const listener = start(join(app, 'dist/listener.js'), { cwd: app });
      expect(await listener.ended()).toEqual({ code: 0, signal: null });
      expect(listener.output).toBe('order.created 7 1\n{"acknowledgement":"NACK","retry":false,"reason":"enough"}\n');
    },
    TIMEOUT_MS,
  );

  it(
    'has a testing kit that is type-checked, compiled and run: no port, no file, and an end with 0',
    async () => {
      await mkdir(join(app, 'src'), { recursive: true });
      await writeFile(join(app, 'src/tested.ts'), TESTED);
      expect(await compile(app)).toEqual([]);
      const tested = start(join(app, 'dist/tested.js'), { cwd: app });
      expect(await tested.ended()).toEqual({ code: 0, signal: null });
      expect(tested.output.split('\n').at(-2)).toBe('1 improper,2 ack');
    },
    TIMEOUT_MS,
  );

  it(
    'is entered through its index alone',
    async () => {
      await writeFile(
        join(app, 'entrances.mjs'),
        entrancesProgram([
          'mmmq',
          'mmmq/consumer',
          'mmmq/disk-queue',
          'mmmq/express',
          'mmmq/producer',
          'mmmq/testing',
          'mmmq/package.json',
          'mmmq/dist/index.js',
          'mmmq/dist/storage/index.js',
        ]),
      );
      const program = start(join(app, 'entrances.mjs'), { cwd: app });
      expect(await program.ended()).toEqual({ code: 0, signal: null });
      expect(JSON.parse(program.output)).toEqual({
        mmmq: 'found',
        'mmmq/consumer': 'found',
        'mmmq/disk-queue': 'found',
        'mmmq/express': 'found',
        'mmmq/producer': 'found',
        'mmmq/testing': 'found',
        'mmmq/package.json': 'found',
        'mmmq/dist/index.js': 'ERR_PACKAGE_PATH_NOT_EXPORTED',
        'mmmq/dist/storage/index.js': 'ERR_PACKAGE_PATH_NOT_EXPORTED',
      });
    },
    TIMEOUT_MS,
  );

  it(
    'exports every type that one of its declarations mentions',
    () => {
      for (const index of [
        'index.d.ts',
        'consumer/index.d.ts',
        'disk-queue/index.d.ts',
        'express/index.d.ts',
        'producer/index.d.ts',
        'testing/index.d.ts',
      ])
        expect([index, unexportedTypes(join(unpacked, 'dist'), index)]).toEqual([index, []]);
    },
    TIMEOUT_MS,
  );

  it(
    'holds the program with its declarations and its settings, and neither tests nor sources nor data',
    async () => {
      const files = (await readdir(unpacked, { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map((entry) => relative(unpacked, join(entry.parentPath, entry.name)).replaceAll('\\', '/'));
      expect(files).toEqual(
        expect.arrayContaining(['package.json', 'LICENSE', 'config/mmmq.yaml', 'dist/index.js', 'dist/index.d.ts', 'dist/main.js']),
      );
      const allowed =
        /^(dist\/.+(\.js|\.d\.ts)|config\/mmmq\.yaml|docs\/.+\.md|package\.json|LICENSE|(README|ARCHITECTURE|CHANGELOG)\.md)$/;
      expect(files.filter((file) => !allowed.test(file) || file.includes('.spec.'))).toEqual([]);
    },
    TIMEOUT_MS,
  );
});

/** The options of modules are computed from the settings: what is to be written is their members, which need no name. */
const NAMELESS: ReadonlySet<string> = new Set(['BackoffSettings', 'BrokerSettings', 'DispatcherSettings', 'Partially']);

/** What the exported declarations mention of the package's own and its index does not export: `Dispatcher mentions Backoff`. */
function unexportedTypes(dist: string, entranceFile: string): readonly string[] {
  const index = join(dist, entranceFile);
  const { NodeNext: module } = ts.ModuleKind;
  const program = ts.createProgram([index], { module, target: ts.ScriptTarget.ES2023, types: [] });
  const checker = program.getTypeChecker();
  const original = (symbol: ts.Symbol): ts.Symbol =>
    (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : checker.getAliasedSymbol(symbol);
  const source = program.getSourceFile(index);
  const entrance = source === undefined ? undefined : checker.getSymbolAtLocation(source);
  if (entrance === undefined) throw new Error(`${index} exports nothing`);
  const exported = new Map(checker.getExportsOfModule(entrance).map((symbol) => [original(symbol), symbol.name]));
  /** A member, a parameter or a type parameter has no name of its own in the module. */
  const isOwn = (symbol: ts.Symbol): boolean =>
    symbol.declarations?.some((declaration) => {
      const statement = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
      return ts.isSourceFile(statement.parent) && statement.parent.fileName.startsWith(dist);
    }) ?? false;
  const unexported = new Set<string>();
  for (const [symbol, name] of exported) {
    const visit = (node: ts.Node): void => {
      const symbolHere = ts.isIdentifier(node) ? checker.getSymbolAtLocation(node) : undefined;
      const mentioned = symbolHere === undefined ? undefined : original(symbolHere);
      if (mentioned !== undefined && isOwn(mentioned) && !exported.has(mentioned) && !NAMELESS.has(mentioned.name))
        unexported.add(`${name} mentions ${mentioned.name}`);
      ts.forEachChild(node, visit);
    };
    symbol.declarations?.forEach(visit);
  }
  return [...unexported];
}

/** Compiles the sources of the application. @returns what is wrong with them, or with the package; what others declare is theirs */
async function compile(app: string): Promise<readonly string[]> {
  await writeFile(join(app, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  const tsc = join(REPOSITORY, 'node_modules/typescript/bin/tsc');
  const said = await run(process.execPath, [tsc, '-p', app, '--pretty', 'false'], { cwd: app }).catch(
    (failure: { stdout: string }) => failure,
  );
  return said.stdout.split('\n').filter((line) => /^\S/.test(line) && !/^[^(]*node_modules\/(?!mmmq\/)/.test(line));
}

/** A program that prints what comes of each import. */
function entrancesProgram(entrances: readonly string[]): string {
  return `
    const attempt = (entrance) =>
      import(entrance, entrance.endsWith('.json') ? { with: { type: 'json' } } : {}).then(() => 'found', (error) => error.code);
    const entrances = ${JSON.stringify(entrances)};
    console.log(JSON.stringify(Object.fromEntries(await Promise.all(entrances.map(async (one) => [one, await attempt(one)])))));
  `;
}
