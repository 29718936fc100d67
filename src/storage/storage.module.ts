import { Logger, Module, type DynamicModule } from '@nestjs/common';
import { ENGINE } from '../core/index.js';
import { BROKER_SETTINGS, type BrokerSettings } from '../settings/index.js';
import { CheckpointStore } from './checkpoint/index.js';
import { FileEngine } from './file-engine.js';
import { NodeFileSystem, OpenFiles, type FileSystem } from './file-system/index.js';
import { OffsetIndexStore, SegmentStore } from './segment/index.js';

/** The Nest token of the {@link FileSystem} that everything below a data directory goes through. */
export const FILE_SYSTEM = Symbol('mmmq.file-system');

/**
 * The files below the data directory: the stores of segments, offset indexes and checkpoints, and the engine that is made of them.
 * It exports {@link ENGINE}, and nothing outside this folder needs more.
 */
@Module({})
export class StorageModule {
  /** @param settings the module that exports {@link BROKER_SETTINGS} */
  static register(settings: DynamicModule): DynamicModule {
    return {
      module: StorageModule,
      imports: [settings],
      providers: [
        { provide: FILE_SYSTEM, useClass: NodeFileSystem },
        { provide: OpenFiles, useFactory: (fileSystem: FileSystem) => new OpenFiles(fileSystem), inject: [FILE_SYSTEM] },
        { provide: SegmentStore, useFactory: (files: OpenFiles) => new SegmentStore(files), inject: [OpenFiles] },
        { provide: OffsetIndexStore, useFactory: (files: OpenFiles) => new OffsetIndexStore(files), inject: [OpenFiles] },
        {
          provide: CheckpointStore,
          useFactory: (files: OpenFiles) => new CheckpointStore(files.fileSystem, files),
          inject: [OpenFiles],
        },
        {
          provide: ENGINE,
          useFactory: (
            { storage, segment }: BrokerSettings,
            files: OpenFiles,
            segments: SegmentStore,
            offsetIndexes: OffsetIndexStore,
            checkpoints: CheckpointStore,
          ) =>
            new FileEngine(
              { fileSystem: files.fileSystem, files, segments, offsetIndexes, checkpoints, logger: new Logger('Storage') },
              { rootDir: storage.rootDir, reserveBytes: storage.reserveBytes, segmentMaxBytes: segment.maxBytes },
            ),
          inject: [BROKER_SETTINGS, OpenFiles, SegmentStore, OffsetIndexStore, CheckpointStore],
        },
      ],
      exports: [ENGINE],
    };
  }
}
