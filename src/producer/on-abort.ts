/** Those who wait for a signal. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls back when the signal is aborted. All share one listener: thousands of messages may be produced with one signal, and Node.js warns of a leak
 * at eleven listeners.
 * @returns what ends the wait
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = waiting.get(signal) ?? new Set<() => void>();
  if (callbacks.size === 0) {
    waiting.set(signal, callbacks);
    signal.addEventListener('abort', callAll);
  }
  callbacks.add(callback);
  return () => {
    if (!callbacks.delete(callback) || callbacks.size > 0) return;
    signal.removeEventListener('abort', callAll);
    waiting.delete(signal);
  };
}

function callAll({ target }: Event): void {
  for (const callback of waiting.get(target as AbortSignal) ?? []) callback();
}
