import { describe, expect, it } from '@jest/globals';
import { failureReason } from './failure-reason.js';

describe('failureReason', () => {
  it.each([
    ['ECONNREFUSED', 'connection refused (ECONNREFUSED)'],
    ['EPIPE', 'connection reset (EPIPE)'],
    ['ENOTFOUND', 'name not found (ENOTFOUND)'],
    ['EAI_AGAIN', 'name server does not answer (EAI_AGAIN)'],
    ['EHOSTUNREACH', 'host not reachable (EHOSTUNREACH)'],
    ['HPE_INVALID_CONSTANT', 'answer is not HTTP (HPE_INVALID_CONSTANT)'],
    ['CERT_HAS_EXPIRED', 'no TLS connection (CERT_HAS_EXPIRED)'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'no TLS connection (ERR_TLS_CERT_ALTNAME_INVALID)'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'no TLS connection (ERR_SSL_WRONG_VERSION_NUMBER)'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'no TLS connection (UNABLE_TO_VERIFY_LEAF_SIGNATURE)'],
    ['EWHATEVER', 'the request failed (EWHATEVER)'],
  ])('puts %s into words', (code, reason) => {
    expect(failureReason(Object.assign(new Error('x'), { code }))).toBe(reason);
  });

  it('says the name of an error without a code', () => {
    expect(failureReason(new TypeError('x'))).toBe('the request failed (TypeError)');
    expect(failureReason(Object.assign(new Error('x'), { name: 'constructor' }))).toBe('the request failed (constructor)');
  });

  it.each([undefined, null, 'secret', 7, {}, { code: 7, name: {} }, { code: 'secret\nline', name: 'a secret' }, { code: 'x'.repeat(65) }])(
    'quotes nothing of what is no code: %j',
    (error) => {
      expect(failureReason(error)).toBe('the request failed');
    },
  );
});
