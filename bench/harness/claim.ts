import type { Series } from './statistics.js';
import type { Workbench } from './workbench.js';

/** What is claimed of the broker, and how it is measured. */
export interface Claim {
  /** The word on the command line. */
  readonly name: string;
  readonly about: string;
  measure(bench: Workbench): Promise<Findings>;
}

export interface Findings {
  readonly tables: readonly Table[];
  readonly bars: readonly Bar[];
}

/** A series is shown as its median and its spread, what is missing as a dash. */
export type Cell = string | Series | undefined;

export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
}

/** What the median of a figure has to keep to. */
export interface Bar {
  readonly what: string;
  /** Undefined where the system does not tell. */
  readonly measured: Series | undefined;
  readonly rule: { readonly atMost: number } | { readonly atLeast: number };
}
