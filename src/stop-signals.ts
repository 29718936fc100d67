const STOP_SIGNALS = ['SIGTERM', 'SIGINT'] as const;
export type StopSignal = (typeof STOP_SIGNALS)[number];

/**
 * Hears SIGTERM and SIGINT from its construction on. Until somebody takes over, the process ends at once and with 0: nothing was promised to
 * anybody yet. It needs nothing, so that it is there before the rest of the program is loaded, which takes a while.
 */
export class StopSignals {
  private stop = endAtOnce;

  constructor() {
    for (const signal of STOP_SIGNALS) process.on(signal, () => this.stop(signal));
  }

  /** From now on a signal is the affair of `stop`. */
  handTo(stop: (signal: StopSignal) => void): void {
    this.stop = stop;
  }
}

function endAtOnce(signal: StopSignal): void {
  console.log(`mmmq stops on ${signal}, before it was ready`);
  process.exit(0);
}
