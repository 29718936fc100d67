import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, describe, expect, it } from '@jest/globals';
import { context, propagation, ROOT_CONTEXT, type Context, type ContextManager, type TextMapPropagator } from '@opentelemetry/api';
import { producers } from '../../test/support/producers.js';
import { acknowledge, ScriptedTransport } from '../../test/support/scripted-transport.js';

const open = producers();
const TRACE = Symbol('trace');
const traceparent = (digit: string): string => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`;

/** What an SDK of OpenTelemetry would set up. */
function setUp(inject: TextMapPropagator['inject']): void {
  const storage = new AsyncLocalStorage<Context>();
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, work, self, ...args) => storage.run(active, () => work.apply(self, args)),
    bind: (_active, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  context.setGlobalContextManager(manager);
  propagation.setGlobalPropagator({ inject, extract: (active) => active, fields: () => [] });
}

const injectTrace: TextMapPropagator['inject'] = (active, carrier, setter) => {
  const trace = active.getValue(TRACE) as string | undefined;
  if (trace === undefined) return;
  setter.set(carrier, 'traceparent', trace);
  setter.set(carrier, 'tracestate', 'vendor=value');
};

afterEach(() => {
  context.disable();
  propagation.disable();
});

describe('the active trace', () => {
  it('of OpenTelemetry goes with what is produced in it, as its propagator spells it', async () => {
    setUp(injectTrace);
    const transport = new ScriptedTransport(acknowledge());
    const producer = await open({ transport });
    await context.with(ROOT_CONTEXT.setValue(TRACE, traceparent('a')), () => producer.produce('order.created', 1));
    await producer.produce('order.created', 2);
    await context.with(ROOT_CONTEXT.setValue(TRACE, traceparent('a')), () =>
      producer.produce('order.created', 3, { traceparent: traceparent('b') }),
    );
    expect(transport.requests.map(({ headers }) => [headers['traceparent'], headers['tracestate']])).toEqual([
      [traceparent('a'), 'vendor=value'],
      [undefined, undefined],
      [traceparent('b'), undefined],
    ]);
  });

  it('that is not valid, or that cannot be had, costs no message', async () => {
    for (const inject of [
      (_active: Context, carrier: unknown, setter: { set(carrier: unknown, key: string, value: string): void }) =>
        setter.set(carrier, 'traceparent', 'x\r\ny: z'),
      () => {
        throw new Error('broken');
      },
    ]) {
      propagation.disable();
      setUp(inject);
      const transport = new ScriptedTransport(acknowledge());
      const producer = await open({ transport });
      await producer.produce('order.created', 1);
      expect(transport.requests[0]?.headers).toEqual({ 'content-type': 'application/json' });
    }
  });
});
