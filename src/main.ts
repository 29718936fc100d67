import 'reflect-metadata';
import { runBroker } from './broker.process.js';

await runBroker();
