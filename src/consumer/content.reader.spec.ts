import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { Transform, Type } from 'class-transformer';
import { IsInt, IsString, ValidateNested } from 'class-validator';
import { readContent } from './content.reader.js';
import type { MessageListenerOptions } from './message-listener.decorator.js';
import { Reject } from './reject.error.js';

class Address {
  @IsString()
  street!: string;
}

class Order {
  @IsInt()
  amount!: number;

  @ValidateNested()
  @Type(() => Address)
  address!: Address;
}

class Untouched {}

class Broken {
  @Transform(() => {
    throw new Error('a secret');
  })
  amount!: number;
}

const read = (json: string, options: MessageListenerOptions = {}): Promise<unknown> => readContent(Buffer.from(json), options);
const ORDER = '{"amount":3,"address":{"street":"Main"},"more":true}';

describe('the content of a message', () => {
  it('is parsed, or its bytes where they are asked for', async () => {
    expect(await read('[1.0,"x"]')).toEqual([1, 'x']);
    expect(await read('12345678901234567890.0', { raw: true })).toEqual(Buffer.from('12345678901234567890.0'));
  });

  it('is an instance of its DTO class, with what the class does not name unless a whitelist is asked for', async () => {
    const order = (await read(ORDER, { dto: Order })) as Order;
    expect(order).toBeInstanceOf(Order);
    expect(order.address).toBeInstanceOf(Address);
    expect(order).toMatchObject({ amount: 3, address: { street: 'Main' }, more: true });
    expect(await read(ORDER, { dto: Order, whitelist: true })).not.toHaveProperty('more');
    expect(await read('{"a":1}', { dto: Untouched })).toEqual({ a: 1 });
  });

  it.each([
    ['{"amount":"x","address":{"street":1}}', 'content: amount: amount must be an integer number; address.street: street must be a string'],
    ['[]', 'content: must be an object'],
    ['7', 'content: must be an object'],
  ])('is rejected when it breaks a rule, with the members that are to blame: %s', async (json, reason) => {
    const reading = read(json, { dto: Order });
    await expect(reading).rejects.toThrow(Reject);
    await expect(reading).rejects.toThrow(reason);
  });

  it('is rejected where its class cannot take it', async () => {
    await expect(read('{"amount":1}', { dto: Broken })).rejects.toThrow(/^content: cannot be read as Broken$/);
  });

  it('gives nothing a prototype of its own', async () => {
    const order = (await read('{"amount":3,"address":{"street":"x"},"__proto__":{"polluted":true}}', { dto: Order })) as Order;
    expect(order).toBeInstanceOf(Order);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});
