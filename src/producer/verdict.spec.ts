import { describe, expect, it } from '@jest/globals';
import { verdictsOf, type Verdict } from './verdict.js';

const NOW = Date.UTC(2026, 0, 1);
const nack = { acknowledgement: 'NACK', reason: 'because', field: 'id' };

function verdictOf(status: number, body: unknown, retryAfter?: string): Verdict | undefined {
  const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
  return verdictsOf(
    { status, headers, body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)) },
    ['order.created'],
    NOW,
  )[0];
}

describe('the verdict of an answer', () => {
  it.each<[number, unknown, Partial<Verdict>]>([
    [200, { acknowledgement: 'ACK', topic: 'order.created', offset: 41 }, { kind: 'acknowledged', offset: 41 }],
    [200, { acknowledgement: 'ACK', topic: 'order.paid', offset: 41 }, { kind: 'unsettled', mayBeStored: true }],
    [200, { acknowledgement: 'ACK', topic: 'order.created', offset: -1 }, { kind: 'unsettled', mayBeStored: true }],
    [200, { acknowledgement: 'ACK', topic: 'order.created', offset: '41' }, { kind: 'unsettled', mayBeStored: true }],
    [200, nack, { kind: 'unsettled', mayBeStored: true }],
    [204, '', { kind: 'unsettled', mayBeStored: true }],
    [503, { acknowledgement: 'ACK', topic: 'order.created', offset: 41 }, { kind: 'unsettled', mayBeStored: true }],
    [400, nack, { kind: 'refused', status: 400, field: 'id', reason: 'because' }],
    [413, '<html>', { kind: 'refused', status: 413, reason: 'refused, and not in the words of a broker' }],
    [404, '', { kind: 'refused', status: 404, reason: 'no broker takes messages at this address; look at the option broker' }],
    [408, '', { kind: 'unsettled', mayBeStored: false }],
    [429, nack, { kind: 'unsettled', mayBeStored: false, reason: 'answered with 429: because' }],
    [507, nack, { kind: 'unsettled', mayBeStored: false }],
    [507, '', { kind: 'unsettled', mayBeStored: true }],
    [503, nack, { kind: 'unsettled', mayBeStored: true }],
    [502, '<html>', { kind: 'unsettled', mayBeStored: true, reason: 'answered with 502' }],
    [200, 'null', { kind: 'unsettled', mayBeStored: true }],
  ])('%i %j', (status, body, verdict) => {
    expect(verdictOf(status, body)).toMatchObject(verdict);
  });

  it.each([
    ['3', 3000],
    ['Thu, 01 Jan 2026 00:00:05 GMT', 5000],
    ['Wed, 31 Dec 2025 23:00:00 GMT', 0],
    ['soon', 0],
    ['-5', 0],
    ['1.5', 0],
  ])('knows how long to wait: %s', (header, retryAfterMs) => {
    expect(verdictOf(503, nack, header)).toMatchObject({ retryAfterMs });
  });

  it('has a reason that fits into a line', () => {
    const verdict = verdictOf(400, { ...nack, reason: `a\nb\u202e${'x'.repeat(1000)}` });
    expect(verdict).toMatchObject({ reason: expect.stringMatching(/^a b x{500,508}$/) });
  });
});
