export { Spool, type SpoolSettings } from './spool.js';
