import { InvalidValueError } from './mmmq.error.js';

export const WebProtocol = { HTTP: 'http', HTTPS: 'https' } as const;
export type WebProtocol = (typeof WebProtocol)[keyof typeof WebProtocol];
