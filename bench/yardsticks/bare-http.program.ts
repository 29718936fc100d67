import { serveBare } from '../harness/bare-http-server.js';

/* Yardstick H: answers what the broker answers and stores nothing. What node:http, and the load generator, allow. */
serveBare((_body, answer) => answer('{"acknowledgement":"ACK","topic":"bench.0","offset":1000000}'));
