import { join } from 'node:path';
import {
  CHECKPOINTS_DIRECTORY,
  CorruptLogError,
  offsetIndexFileName,
  parseCheckpointFileName,
  parseSegmentName,
  segmentFileName,
  type FileSystem,
} from '../storage/index.js';
import { moveAwayCommand, type Obstacle } from './obstacle.js';

/** Behind the name of an offset index that a repair is writing; what stands under the index's own name is whole at every moment. */
export const REBUILT_SUFFIX = '.repair';

/** The two files of a segment: their paths, and which of them are there. */
export interface SegmentPair {
  readonly baseOffset: number;
  readonly segment: string;
  readonly offsetIndex: string;
  hasSegment: boolean;
  hasOffsetIndex: boolean;
}

/** What stands in a topic's directory. */
export interface TopicFiles {
  readonly topic: string;
  readonly dir: string;
  /** In the order of their first offsets. */
  readonly pairs: readonly SegmentPair[];
  /** What has a segment's name and is none. */
  readonly misfits: readonly CorruptLogError[];
  readonly checkpoints: readonly { readonly dispatcher: string; readonly path: string }[];
  /** What is in the place of checkpoints. */
  readonly obstacles: readonly Obstacle[];
  /** Paths of offset indexes that a repair was writing when it was interrupted. */
  readonly unfinishedRepairs: readonly string[];
  /** Paths of what is none of the broker's. */
  readonly leftovers: readonly string[];
  /** An empty directory, or one with nothing of the broker's, is none: a start leaves it alone. */
  readonly isTopic: boolean;
}

export async function findTopicFiles(fileSystem: FileSystem, rootDir: string, topic: string): Promise<TopicFiles> {
  const dir = join(rootDir, topic);
  const pairs = new Map<number, SegmentPair>();
  const misfits: CorruptLogError[] = [];
  const obstacles: Obstacle[] = [];
  const unfinishedRepairs: string[] = [];
  const leftovers: string[] = [];
  let hasCheckpoints = false;
  for (const entry of await fileSystem.list(dir)) {
    const path = join(dir, entry.name);
    const name = parseSegmentName(entry.name);
    if (name === undefined) {
      if (entry.name === CHECKPOINTS_DIRECTORY) {
        if (entry.kind === 'directory') hasCheckpoints = true;
        else obstacles.push(inPlaceOfCheckpoints(rootDir, path));
      } else if (entry.kind === 'file' && isRebuiltIndex(entry.name)) unfinishedRepairs.push(path);
      else leftovers.push(path);
    } else if (entry.kind !== 'file') misfits.push(new CorruptLogError(path, 0, 'a file of a segment is no ordinary file'));
    else if (!Number.isSafeInteger(name.baseOffset)) {
      misfits.push(new CorruptLogError(path, 0, `the first offset in the name is beyond ${Number.MAX_SAFE_INTEGER}`));
    } else {
      const pair = pairs.get(name.baseOffset) ?? newPair(dir, name.baseOffset);
      if (name.kind === 'segment') pair.hasSegment = true;
      else pair.hasOffsetIndex = true;
      pairs.set(name.baseOffset, pair);
    }
  }
  const checkpoints: { dispatcher: string; path: string }[] = [];
  if (hasCheckpoints) {
    const directory = join(dir, CHECKPOINTS_DIRECTORY);
    for (const entry of await fileSystem.list(directory)) {
      const dispatcher = parseCheckpointFileName(entry.name);
      const path = join(directory, entry.name);
      if (dispatcher === undefined) leftovers.push(path);
      else if (entry.kind === 'file') checkpoints.push({ dispatcher, path });
      else obstacles.push(inPlaceOfCheckpoint(rootDir, path, dispatcher));
    }
  }
  const isTopic = pairs.size > 0 || misfits.length > 0 || hasCheckpoints;
  return {
    topic,
    dir,
    pairs: [...pairs.values()].sort((a, b) => a.baseOffset - b.baseOffset),
    misfits,
    checkpoints,
    // No repair goes where there is no topic, and no dispatcher.
    obstacles: isTopic ? obstacles : [],
    unfinishedRepairs: isTopic ? unfinishedRepairs : [],
    leftovers: isTopic ? leftovers : [...leftovers, ...unfinishedRepairs, ...obstacles.map(({ path }) => path)],
    isTopic,
  };
}

function inPlaceOfCheckpoint(rootDir: string, path: string, dispatcher: string): Obstacle {
  const reason =
    `it is no ordinary file and is in the place of the checkpoint of dispatcher ${dispatcher}: its deliveries of this topic stand still ` +
    'until it is moved away. They begin at offset 0 then, or where a checkpoint says that is put there before the start';
  return { path, reason, remedy: moveAwayCommand(rootDir, path) };
}

function inPlaceOfCheckpoints(rootDir: string, path: string): Obstacle {
  const reason =
    'it is no directory and is in the place of the one for checkpoints: the deliveries of this topic stand still, for every dispatcher, ' +
    'until it is moved away. They begin at offset 0 then, or where checkpoints say that are put there before the start';
  return { path, reason, remedy: moveAwayCommand(rootDir, path) };
}

function isRebuiltIndex(name: string): boolean {
  return name.endsWith(REBUILT_SUFFIX) && parseSegmentName(name.slice(0, -REBUILT_SUFFIX.length))?.kind === 'offset-index';
}

function newPair(dir: string, baseOffset: number): SegmentPair {
  return {
    baseOffset,
    segment: join(dir, segmentFileName(baseOffset)),
    offsetIndex: join(dir, offsetIndexFileName(baseOffset)),
    hasSegment: false,
    hasOffsetIndex: false,
  };
}
