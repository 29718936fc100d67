import type { TraceHeaders } from './outgoing-message.js';

/** Gives the headers of the trace in whose context it is called; none where there is no trace. */
export type ActiveTrace = () => TraceHeaders;

const NONE: TraceHeaders = {};

/**
 * The active trace of OpenTelemetry, where its API is installed: an optional peer, which without an SDK behind it gives nothing. The trace is
 * spelled by the propagator that the application has chosen, and handed on as it is.
 */
export async function activeTrace(): Promise<ActiveTrace> {
  try {
    const { context, propagation } = await import('@opentelemetry/api');
    return () => {
      // Whatever a propagator does, it costs no message.
      try {
        const headers: Record<string, string> = {};
        propagation.inject(context.active(), headers);
        return headers;
      } catch {
        return NONE;
      }
    };
  } catch {
    return () => NONE;
  }
}
