import { afterAll, describe, expect, it } from '@jest/globals';
import { Producer, TransportError, type Receipt } from '../../src/producer/index.js';
import { recordingLogger } from '../support/disk-queue.js';
import { answer, ImpatientClock, ScriptedTransport, type Script, type SentMessage } from '../support/scripted-transport.js';
import { until } from '../support/until.js';
import { crashImages } from './crash-images.js';
import { withoutPendingOf, type DiskState } from './disk-state.js';
import { below, seededRandom } from './seeded-random.js';
import { SimulatedDisk } from './simulated-disk.js';

/*
 * What is tried: a producer with a spool on a disk that forgets what it may forget, in front of a broker that was away and comes back, loses an
 * answer, refuses a message for good, and fails for others. At every call that changes something on the disk the producer's process dies, or the
 * power fails and leaves some of the images that `crashImages` names. The next process opens the spool on what is left, and when that is empty, each
 * message for which a produce had answered "spooled" is in the broker's log, once and in the order of its topic, or in the dead file if it is one
 * that is refused. And every call fails, once, with every error.
 */

/** `MMMQ_CRASH_SEED` for another run; `MMMQ_CRASH_ALL=1` for every image instead of some. */
const SEED = Number(process.env['MMMQ_CRASH_SEED'] ?? '1');
const isWhole = process.env['MMMQ_CRASH_ALL'] === '1';
const IMAGES_PER_STEP = isWhole ? Number.POSITIVE_INFINITY : 15;
const LIMIT_MS = 3_600_000;

const DIR = '/spool';
const DEAD_FILE = `${DIR}/producer.dead.ndjson`;
const LOCK_FILE = `${DIR}/.mmmq.lock`;
const REFUSED = 'm3';

/** The broker, which does not crash here. */
class ModelBroker {
  isAway = false;
  /** What becomes of the next requests; nothing special behind them. */
  readonly faults: ('answer lost' | 'one fails')[] = [];

  constructor(readonly logs = new Map<string, string[]>()) {}

  copy(): ModelBroker {
    return new ModelBroker(new Map([...this.logs].map(([topic, ids]) => [topic, [...ids]])));
  }

  readonly script: Script = (messages) => {
    if (this.isAway) throw new TransportError('connection refused', false);
    const fault = this.faults.shift();
    const items = messages.map((message, place) =>
      fault === 'one fails' && place > 0 ? { status: 507, acknowledgement: 'NACK', reason: 'full' } : this.store(message),
    );
    if (fault === 'answer lost') throw new TransportError('connection lost', true);
    const failed = items.find(({ status }) => status !== undefined);
    return answer(failed?.status ?? 200, items.length === 1 ? items[0] : items);
  };

  private store({ topic, id }: SentMessage): {
    readonly acknowledgement: string;
    readonly status?: number;
    readonly [member: string]: unknown;
  } {
    if (id === REFUSED) return { status: 422, acknowledgement: 'NACK', reason: 'no' };
    const log = this.logs.get(topic) ?? [];
    this.logs.set(topic, log);
    if (!log.includes(id)) log.push(id);
    return { acknowledgement: 'ACK', topic, offset: log.indexOf(id) };
  }
}

/** A disk as a crash finds it, what was promised until then, and the broker at that moment. */
interface CrashPoint {
  readonly at: string;
  readonly state: DiskState;
  readonly spooled: readonly string[];
  readonly broker: ModelBroker;
}

function openOn(disk: SimulatedDisk, broker: ModelBroker): Promise<Producer> {
  return Producer.open({
    broker: 'http://127.0.0.1:1',
    transport: new ScriptedTransport(broker.script),
    clock: new ImpatientClock(),
    backoff: { initialMs: 1, maxMs: 1 },
    batch: { maxMessages: 3 },
    logger: recordingLogger().logger,
    spool: { dir: DIR, fileSystem: disk },
  });
}

/** The producer's life. @param spooled gets the id of each message that a produce has answered so */
async function work(disk: SimulatedDisk, broker: ModelBroker, spooled: string[]): Promise<void> {
  const producer = await openOn(disk, broker);
  const produce = async (id: string, topic: string): Promise<void> => {
    const receipt = await producer
      .produce(topic, 'x'.repeat(300), { id })
      .catch((error: unknown) => error as { outcome?: Receipt['outcome'] });
    if (receipt.outcome === 'spooled') spooled.push(id);
  };
  broker.isAway = true;
  await Promise.all([produce('m0', 'order.created'), produce('m1', 'order.paid')]);
  await produce('m2', 'order.created');
  await Promise.all([produce(REFUSED, 'order.created'), produce('m4', 'order.created'), produce('m5', 'order.paid')]);
  broker.faults.push('answer lost', 'one fails');
  broker.isAway = false;
  await Promise.all([produce('m6', 'order.created'), produce('m7', 'mail.sent')]);
  await until(() => producer.spoolDepth === 0);
  await produce('m8', 'order.created');
  broker.isAway = true;
  await produce('m9', 'order.paid');
  await producer.close().catch(() => undefined);
}

/** @returns what is wrong once the spool was emptied */
async function problemOf({ state, spooled, broker }: CrashPoint): Promise<string | undefined> {
  const disk = SimulatedDisk.of(state, SEED);
  const next = broker.copy();
  const producer = await openOn(disk, next);
  await until(() => producer.spoolDepth === 0);
  await producer.close();
  return brokenPromise(disk, next, spooled);
}

function brokenPromise(disk: SimulatedDisk, { logs }: ModelBroker, spooled: readonly string[]): string | undefined {
  const dead = (disk.files().get(DEAD_FILE)?.toString() ?? '').split('\n').flatMap((line) => {
    // Half a line is what a crash may leave: the message is on one behind it.
    try {
      return [(JSON.parse(line) as { id: string }).id];
    } catch {
      return [];
    }
  });
  const stored = [...logs.values()].flat();
  const lost = spooled.find((id) => !(id === REFUSED ? dead : stored).includes(id));
  if (lost !== undefined) return `${lost} is lost; stored: ${stored.join()}; dead: ${dead.join()}`;
  if (dead.some((id) => id !== REFUSED)) return `dead: ${dead.join()}`;
  for (const [topic, ids] of logs) if (ids.join() !== [...ids].sort().join()) return `${topic} has ${ids.join()}`;
  return undefined;
}

describe('the spool of a producer', () => {
  let images = 0;
  let errors = 0;
  afterAll(() => {
    process.stdout.write(`spool: seed ${SEED}, ${images} disks opened behind a crash, ${errors} runs with an error of the disk\n`);
  });

  it(
    'loses nothing that it took, and stores it once and in order, when the process dies or the power fails at any step',
    async () => {
      const random = seededRandom(SEED);
      const disk = SimulatedDisk.empty(SEED);
      const broker = new ModelBroker();
      const spooled: string[] = [];
      const points: CrashPoint[] = [];
      const take = (at: string): unknown => points.push({ at, state: disk.state, spooled: [...spooled], broker: broker.copy() });
      disk.onStep = ({ call, operation, path }) => take(`before call ${call} (${operation} ${path}) took effect`);
      await work(disk, broker, spooled);
      take('at the end');
      expect(spooled).toEqual(expect.arrayContaining(['m0', 'm1', 'm2', REFUSED, 'm4', 'm5', 'm9']));
      expect(points.some(({ at }) => at.includes(`sync ${DEAD_FILE}`))).toBe(true);

      for (const point of points) {
        const left = [
          ...crashImages(withoutPendingOf(point.state, LOCK_FILE), random, {
            combinationsUpTo: 3,
            randomCount: 2,
            isTornEverywhere: false,
          }),
        ];
        const tried = [{ name: 'killed', state: point.state }];
        while (left.length > 0 && tried.length <= IMAGES_PER_STEP) tried.push(...left.splice(below(random, left.length), 1));
        for (const { name, state } of tried) {
          images += 1;
          expect([point.at, name, await problemOf({ ...point, state })]).toEqual([point.at, name, undefined]);
        }
      }
      expect(images).toBeGreaterThan(100);
    },
    LIMIT_MS,
  );

  it(
    'loses nothing that it took when a call fails, and goes on by itself',
    async () => {
      const whole = SimulatedDisk.empty(SEED);
      await work(whole, new ModelBroker(), []);
      for (const [call, { operation }] of whole.calls.entries()) {
        if (operation === 'close' || operation === 'tryLock') continue;
        for (const error of ['EIO', 'ENOSPC']) {
          errors += 1;
          const disk = SimulatedDisk.empty(SEED);
          const broker = new ModelBroker();
          const spooled: string[] = [];
          disk.fail({ call, error, times: 1 });
          await work(disk, broker, spooled).catch((failure: unknown) => {
            if ((failure as { code?: string }).code !== 'MMMQ_IO' && (failure as { code?: string }).code !== 'MMMQ_DISK_FULL')
              throw failure;
          });
          disk.heal();
          broker.isAway = false;
          const at = `call ${call} (${operation}) fails with ${error}`;
          expect([at, await problemOf({ at, state: disk.state, spooled, broker })]).toEqual([at, undefined]);
        }
      }
      expect(errors).toBeGreaterThan(50);
    },
    LIMIT_MS,
  );
});
