export * from './mmmq.error.js';
