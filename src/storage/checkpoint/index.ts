export { CHECKPOINTS_DIRECTORY, checkpointFileName, parseCheckpointFileName } from './checkpoint-name.js';
export { CHECKPOINT_BYTES, CheckpointStore } from './checkpoint.store.js';
