import { describe, expect, it } from '@jest/globals';
import { encodeEntries, entryBytesAt, MAX_ENTRY_BYTES, payloadAt } from './entry.codec.js';
import { offsetIndexFileName, parseSegmentName, segmentFileName } from './segment-name.js';

describe('the entry codec', () => {
  it('writes length, CRC32C and payload, big-endian', () => {
    const { bytes, positions } = encodeEntries([Buffer.from('123456789'), Buffer.from('{}')], 100);
    // The check value of CRC32C: "123456789" gives e3069283.
    expect(bytes.toString('hex')).toBe(
      `0000000de3069283${Buffer.from('123456789').toString('hex')}00000006${bytes.subarray(21, 25).toString('hex')}7b7d`,
    );
    expect(positions).toEqual([100, 117]);
    expect(entryBytesAt(bytes, 0)).toBe(17);
    expect(payloadAt(bytes, 0, 17)?.toString()).toBe('123456789');
    expect(payloadAt(bytes, 17, 10)?.toString()).toBe('{}');
  });

  it('takes no length that cannot be right', () => {
    const header = Buffer.alloc(8);
    for (const length of [0, 4, -1, -2147483648, 2147483647, MAX_ENTRY_BYTES - 3]) {
      header.writeInt32BE(length);
      expect(entryBytesAt(header, 0)).toBeUndefined();
    }
    header.writeInt32BE(5);
    expect(entryBytesAt(header, 0)).toBe(9);
    header.writeInt32BE(MAX_ENTRY_BYTES - 4);
    expect(entryBytesAt(header, 0)).toBe(MAX_ENTRY_BYTES);
  });

  it('sees any changed byte of a payload', () => {
    const { bytes } = encodeEntries([Buffer.from('some message')], 0);
    for (let at = 4; at < bytes.length; at += 1) {
      const damaged = Buffer.from(bytes);
      damaged.writeUInt8(damaged.readUInt8(at) ^ 0x10, at);
      expect(payloadAt(damaged, 0, damaged.length)).toBeUndefined();
    }
  });
});

describe('the names of a segment', () => {
  it('are its first offset in 19 digits', () => {
    expect(segmentFileName(0)).toBe('0000000000000000000.mmm');
    expect(offsetIndexFileName(123456)).toBe('0000000000000123456.idx');
    expect(parseSegmentName('0000000000000123456.idx')).toEqual({ baseOffset: 123456, kind: 'offset-index' });
    expect(parseSegmentName('0000000000000000000.mmm')).toEqual({ baseOffset: 0, kind: 'segment' });
    for (const name of ['123.mmm', '0000000000000000000.mmm.bak', '0000000000000000000.log', '-000000000000000001.mmm', '']) {
      expect(parseSegmentName(name)).toBeUndefined();
    }
  });
});
