/** An answer that takes longer did not come from the kernel's memory. */
const FROM_MEMORY_MS = 0.2;
/** Behind such an answer so many calls are left to other threads: the disk can work on several of them. */
const PATIENT_CALLS = 100;
/** So that signals are heard and timers come. */
const PROMPT_CALLS_AT_A_TIME = 256;

/**
 * Whether a call that reads is made at once, in the thread that runs everything, or in another one. The way there and back costs several times
 * what the kernel needs to answer from its memory; an answer that comes from the disk would hold up everything.
 *
 * At once only in a start, where there is nothing to be held up, and only as long as answers come from memory.
 */
export class PromptCalls {
  private starts = 0;
  private patient = 0;
  private prompt = 0;

  async inStart<T>(work: () => Promise<T>): Promise<T> {
    this.starts += 1;
    try {
      return await work();
    } finally {
      this.starts -= 1;
    }
  }

  make<T>(atOnce: () => T, inAnotherThread: () => Promise<T>): Promise<T> {
    return this.starts > 0 && this.isPrompt() ? this.makeAtOnce(atOnce) : inAnotherThread();
  }

  private isPrompt(): boolean {
    if (this.patient === 0 && this.prompt < PROMPT_CALLS_AT_A_TIME) return true;
    if (this.patient > 0) this.patient -= 1;
    else this.prompt = 0;
    return false;
  }

  private async makeAtOnce<T>(atOnce: () => T): Promise<T> {
    this.prompt += 1;
    const beganAtMs = performance.now();
    try {
      return atOnce();
    } finally {
      if (performance.now() - beganAtMs > FROM_MEMORY_MS) this.patient = PATIENT_CALLS;
    }
  }
}
