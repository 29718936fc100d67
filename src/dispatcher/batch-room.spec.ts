import { describe, expect, it } from '@jest/globals';
import { BATCH_BYTES_AT_ONCE, BatchRoom } from './batch-room.js';

const MiB = 1024 * 1024;

describe('BatchRoom', () => {
  it('gives what is asked for while there is plenty, then half of what is left, and never all of it', () => {
    const room = new BatchRoom();
    const taken = Array.from({ length: 1000 }, () => room.take(MiB));
    expect(taken.filter((bytes) => bytes === MiB)).toHaveLength(31);
    expect(taken[31]).toBe(MiB / 2);
    expect(taken.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(BATCH_BYTES_AT_ONCE);
  });

  it('gives the largest batch of the settings to one who is alone', () => {
    expect(new BatchRoom().take(16 * MiB)).toBe(16 * MiB);
  });

  it('has room again for what is given back', () => {
    const room = new BatchRoom();
    for (const bytes of Array.from({ length: 100 }, () => room.take(MiB))) room.giveBack(bytes);
    expect(room.take(16 * MiB)).toBe(16 * MiB);
  });
});
