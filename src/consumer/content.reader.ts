import type { Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { validate, type ValidationError } from 'class-validator';
import type { MessageListenerOptions } from './message-listener.decorator.js';
import { Reject } from './reject.error.js';

/**
 * The content as a listener wants it.
 * @param bytes JSON in UTF-8
 * @throws {Reject} when it breaks a rule of the DTO class
 */
export async function readContent(bytes: Buffer, { dto, whitelist = false, raw = false }: MessageListenerOptions): Promise<unknown> {
  if (raw) return bytes;
  const content: unknown = JSON.parse(bytes.toString());
  return dto === undefined ? content : await instanceOf(dto, content, whitelist);
}

async function instanceOf(dto: Type<object>, content: unknown, whitelist: boolean): Promise<object> {
  if (typeof content !== 'object' || content === null || Array.isArray(content)) throw new Reject('content: must be an object');
  let instance: object;
  try {
    instance = plainToInstance(dto, content);
  } catch (error) {
    throw new Reject(`content: cannot be read as ${dto.name}`, { cause: error });
  }
  // As in Nest's ValidationPipe, a class without any rule takes everything.
  const errors = await validate(instance, { whitelist, forbidUnknownValues: false });
  if (errors.length === 0) return instance;
  throw new Reject(`content: ${errors.flatMap((error) => problemsOf(error, '')).join('; ')}`);
}

/** `address.street: street must be a string`. Neither the values nor the object are told of. */
function problemsOf({ property, constraints = {}, children = [] }: ValidationError, above: string): string[] {
  const path = `${above}${property}`;
  return [
    ...Object.values(constraints).map((problem) => `${path}: ${problem}`),
    ...children.flatMap((child) => problemsOf(child, `${path}.`)),
  ];
}
