export * from '../../src/testing/memory.engine.js';
