import { performance } from 'node:perf_hooks';
import { serveBare } from './bare-http-server.js';
import type { Arrivals } from './consumer.js';

/* Answers ACK to every message at once, and says on `GET` how many there were. */
let count = 0;

serveBare((_body, answer, request) => {
  if (request.method === 'GET') {
    const arrivals: Arrivals = { count, atMs: performance.now() };
    answer(JSON.stringify(arrivals));
    return;
  }
  count += 1;
  answer('{"acknowledgement":"ACK"}');
});
