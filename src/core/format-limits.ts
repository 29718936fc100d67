/** Bytes in front of the payload of an entry in the log: its length and its checksum. */
export const ENTRY_HEADER_BYTES = 8;

/** The largest that `message.max-bytes` of a broker may be: no broker takes the body of a larger publish. */
export const MESSAGE_MAX_BYTES = 8 * 1024 * 1024;

/**
 * The most bytes of entries that one pass to the log writes. A constant of the file format, not a setting: recovery takes a tail that no
 * index record vouches for as the rest of a torn pass up to this size, and as corruption beyond it.
 */
export const PASS_MAX_BYTES = 16 * 1024 * 1024;
