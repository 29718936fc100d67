/** Something that waits until the test lets it go: `faults.append = () => gate.opened`. */
export class Gate {
  readonly opened: Promise<undefined>;
  #open!: () => void;

  constructor() {
    this.opened = new Promise((resolve) => {
      this.#open = () => resolve(undefined);
    });
  }

  open(): void {
    this.#open();
  }
}
