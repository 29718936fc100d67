/** The one function that is used of a package that brings no types. */
declare module 'fs-native-extensions' {
  /** Takes an exclusive open-file-description lock on the whole file. @returns false where another description holds it */
  export function tryLock(fd: number): boolean;
}
