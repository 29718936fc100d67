import { describe, expect, it, jest } from '@jest/globals';
import { BodyBuffer } from './body-buffer.js';

/** The sizes of all buffers that are made while a body of so many bytes comes one by one. */
function capacitiesFor(bodyBytes: number, maxBytes: number): number[] {
  const allocate = jest.spyOn(Buffer, 'allocUnsafeSlow');
  const body = new BodyBuffer(maxBytes);
  for (let count = 0; count < bodyBytes; count += 1) body.append(Buffer.from('x'));
  const capacities = allocate.mock.calls.map(([size]) => size);
  allocate.mockRestore();
  expect(body.bytes.toString()).toBe('x'.repeat(bodyBytes));
  return capacities;
}

describe('BodyBuffer', () => {
  it('is empty without a chunk', () => {
    expect(new BodyBuffer(10).bytes).toHaveLength(0);
  });

  it('is the chunk where there is only one', () => {
    const chunk = Buffer.from('{"topic":"order.created","content":1}');
    const body = new BodyBuffer(1000);
    body.append(chunk);

    expect(body.bytes.buffer).toBe(chunk.buffer);
    expect(body.bytes.equals(chunk)).toBe(true);
  });

  it('keeps no chunk once there are more', () => {
    const body = new BodyBuffer(1000);
    const chunk = Buffer.alloc(3);
    for (const word of ['one', 'two', 'six', 'ten']) {
      chunk.write(word);
      body.append(chunk);
      if (body.length === 3) body.append(Buffer.from(' '));
    }
    chunk.fill('-');

    expect(body.bytes.toString()).toBe('one twosixten');
    expect(body.length).toBe(13);
  });

  it('doubles when it is full, up to what the body can be', () => {
    expect(capacitiesFor(9, 1000)).toEqual([4, 10]);
    expect(capacitiesFor(5000, 5000)).toEqual([4, 10, 22, 46, 94, 190, 382, 766, 1534, 3070, 5000]);
  });

  it('takes at most twice what has arrived, whatever was announced', () => {
    const maxBytes = 8 * 1024 * 1024;
    for (const bodyBytes of [2, 100, 1000]) expect(capacitiesFor(bodyBytes, maxBytes).at(-1)).toBeLessThanOrEqual(2 * bodyBytes);
  });
});
