import { StopSignals } from './stop-signals.js';

const signals = new StopSignals();
await import('reflect-metadata');
const { runBroker } = await import('./broker.process.js');
await runBroker(signals);
