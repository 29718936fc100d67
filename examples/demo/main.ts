import { EventEmitter, on } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BrokerAppModule, DISPATCHER, PATTERN } from './broker-app.module.js';
import { type Arrival, ARRIVAL, ConsumerAppModule } from './consumer-app.module.js';
import { listen } from './listen.js';

/*
 * A broker with one dispatcher and, as a second application, the consumer that it delivers to. Three messages are published over HTTP and
 * seen to arrive, then the demo goes on for whoever wants to publish more, until it is told to stop.
 */

const BROKER_PORT = 8080;
const CONSUMER_PORT = 8081;

const MESSAGES = [
  { topic: 'order.created', content: { id: 1, item: 'tea' } },
  { topic: 'order.paid', content: { id: 1, amount: 4.5 } },
  { topic: 'order.created', content: { id: 2, item: 'coffee' } },
];
const YOUR_MESSAGE = { topic: 'order.created', content: { id: 3, item: 'cake' } };

/** What was started, to be closed in the opposite order. */
const closings: (() => Promise<unknown>)[] = [];

async function demo(stop: AbortSignal): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'mmmq-demo-'));
  closings.push(async () => {
    await rm(dataDir, { recursive: true, force: true });
    console.log('The demo has stopped; its data is removed.');
  });

  const emitter = new EventEmitter();
  const arrivals: AsyncIterator<unknown[]> = on(emitter, ARRIVAL, { signal: stop });
  const consumer = await listen('consumer', ConsumerAppModule.of(emitter), CONSUMER_PORT);
  closings.push(() => consumer.close());
  const broker = await listen('broker', BrokerAppModule.of(dataDir, consumer.url), BROKER_PORT);
  closings.push(() => broker.close());

  console.log(`
mmmq demo

  broker    ${broker.url}, its data in ${dataDir} until the demo ends
  consumer  ${consumer.url}, gets ${PATTERN} from the dispatcher ${DISPATCHER}

ACK means that the message is on disk. The dispatcher then sends it to the consumer.
`);
  for (const message of MESSAGES) {
    const body = JSON.stringify(message);
    console.log(`  publish   ${body}`);
    console.log(`  answer    ${await publish(broker.url, body, stop)}`);
    await showNext(arrivals);
    console.log();
  }
  console.log(`Publish one yourself, in another terminal:

  curl -H 'content-type: application/json' -d '${JSON.stringify(YOUR_MESSAGE)}' ${broker.url}/messages

Ctrl-C stops the demo and removes its data.
`);
  for (;;) await showNext(arrivals);
}

async function publish(brokerUrl: string, body: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(`${brokerUrl}/messages`, { method: 'POST', headers: { 'content-type': 'application/json' }, body, signal });
  const answer = await response.text();
  if (!response.ok) throw new Error(`the broker refused ${body} with ${response.status} ${answer}`);
  return answer;
}

async function showNext(arrivals: AsyncIterator<unknown[]>): Promise<void> {
  const { value } = await arrivals.next();
  const [{ topic, offset, content }] = value as [Arrival];
  console.log(`  arrived   ${topic} offset ${offset}: ${JSON.stringify(content)}`);
}

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => stopping.abort());
try {
  await demo(stopping.signal);
} catch (error) {
  // Whatever was under way when the demo was told to stop has failed for that reason.
  if (!stopping.signal.aborted) {
    console.error(`The demo cannot go on: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
} finally {
  for (const close of closings.toReversed()) await close();
}
