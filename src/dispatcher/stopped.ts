/** Leaves, from wherever a worker is, when it must not go on. Never seen outside of it. */
export class Stopped extends Error {}
