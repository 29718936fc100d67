import { join } from 'node:path';
import { shellWord } from '../core/index.js';

/** Something in the place of a file or directory that the broker needs. A start succeeds all the same, and something stands still. */
export interface Obstacle {
  readonly path: string;
  /** What it is, and what it keeps from going on. */
  readonly reason: string;
  /** The command that moves it out of the way. */
  readonly remedy: string;
}

/** The shell command that puts what is in the data directory beside it, where it is in nobody's way. */
export function moveAwayCommand(rootDir: string, path: string): string {
  const away = `${rootDir}.${path.slice(join(rootDir, '/').length).replaceAll('/', '.')}`;
  return `mv ${shellWord(path)} ${shellWord(away)}`;
}
