import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Workbench } from '../../harness/workbench.js';
import { freePort } from './free-port.js';
import { installed, MissingError, versionOf } from './installed.js';
import { PeerProcess } from './peer-process.js';
import type { Started } from './subject.js';

const run = promisify(execFile);

const VERSION = '4.3.1';
const LOWEST_JAVA = 17;
/** bench/peers/kafka, from bench/peers/dist/peers/servers. */
const KAFKA_DIR = join(import.meta.dirname, '../../../kafka');
const LIBRARIES = join(KAFKA_DIR, 'libs');
const NEEDS_JAVA = `Java ${LOWEST_JAVA} or newer`;
const NEEDS_JARS = `Maven, with which the bench fetches Kafka ${VERSION} once, or the jars of kafka_2.13 and slf4j-simple in bench/peers/kafka/libs`;
const LOGGING = ['-Dorg.slf4j.simpleLogger.defaultLogLevel=warn', '-Dorg.slf4j.simpleLogger.log.kafka.server=info'];
const MEMORY = '512m';

/** One node that is broker and controller. Whether it syncs is asked for with each topic. */
export async function startKafka(bench: Workbench): Promise<Started> {
  const java = await installed('java', NEEDS_JAVA);
  // A version of before 9 begins with 1.
  if (Number.parseInt(await versionOf(java, ['-version']), 10) < LOWEST_JAVA) throw new MissingError(NEEDS_JAVA);
  await fetchLibraries();
  const cwd = await bench.directory();
  const [port, controllerPort] = [await freePort(), await freePort()];
  const config = join(cwd, 'server.properties');
  await writeFile(config, configOf(join(cwd, 'logs'), port, controllerPort));
  const classPath = ['-cp', join(LIBRARIES, '*')];
  const clusterId = randomBytes(16).toString('base64url');
  await run(java, ['-Xmx128m', ...LOGGING, ...classPath, 'kafka.tools.StorageTool', 'format', '-t', clusterId, '-c', config], { cwd });
  const { pid } = await PeerProcess.start(bench, {
    command: java,
    args: [`-Xmx${MEMORY}`, `-Xms${MEMORY}`, ...LOGGING, ...classPath, 'kafka.Kafka', config],
    cwd,
    ready: /Kafka Server started/,
  });
  const common = { peer: 'Kafka', version: `Kafka ${VERSION}` } as const;
  const target = { client: 'kafka', port, pid } as const;
  const text = `one copy, one partition, ${MEMORY} of heap`;
  return {
    subjects: [
      { ...common, manner: 'synced', settings: `flush.messages=1, ${text}`, target: { ...target, isSynced: true } },
      {
        ...common,
        manner: 'as it comes',
        settings: `no flush before the answer: it relies on other copies; ${text}`,
        target: { ...target, isSynced: false },
      },
    ],
    missing: [],
  };
}

/** Some 45 MB, once. */
async function fetchLibraries(): Promise<void> {
  if (existsSync(LIBRARIES)) return;
  const maven = await installed('mvn', NEEDS_JARS);
  console.error(`  fetching Kafka ${VERSION}`);
  const unfinished = `${LIBRARIES}.unfinished`;
  await rm(unfinished, { recursive: true, force: true });
  try {
    await run(maven, ['-q', '-B', '-f', join(KAFKA_DIR, 'pom.xml'), 'dependency:copy-dependencies', `-DoutputDirectory=${unfinished}`]);
  } catch (error) {
    const { stdout } = error as { readonly stdout?: string };
    throw new MissingError(`${NEEDS_JARS}; Maven could not: ${stdout?.trim().split('\n').at(-1) ?? ''}`);
  }
  await rename(unfinished, LIBRARIES);
}

function configOf(logDir: string, port: number, controllerPort: number): string {
  return `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${controllerPort}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}
advertised.listeners=PLAINTEXT://127.0.0.1:${port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=${logDir}
auto.create.topics.enable=false
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
log.segment.delete.delay.ms=100
`;
}
