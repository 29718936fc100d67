import { performance } from 'node:perf_hooks';
import { serveBare } from './bare-http-server.js';
import type { Arrivals } from './consumer.js';

/* Answers ACK to every message at once, alone or in a batch, and says on `GET` how many there were. */
const ACK = '{"acknowledgement":"ACK"}';
let count = 0;

serveBare((_body, answer, request) => {
  if (request.method === 'GET') {
    const arrivals: Arrivals = { count, atMs: performance.now() };
    answer(JSON.stringify(arrivals));
    return;
  }
  if (request.url !== '/messages/batch') {
    count += 1;
    answer(ACK);
    return;
  }
  const inBatch = Number(request.headers['mmmq-count']);
  count += inBatch;
  answer(`[${Array.from({ length: inBatch }, () => ACK).join()}]`);
});
