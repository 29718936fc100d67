export { CHECKPOINTS_DIRECTORY, checkpointFileName, parseCheckpointFileName } from './checkpoint-name.js';
export { CheckpointStore } from './checkpoint.store.js';
