/** Content that is JSON already. Made by {@link rawJson}. */
export class RawJson {
  /** @internal */
  constructor(readonly bytes: Buffer) {}
}

/**
 * Content that is encoded already: it is sent byte for byte, so that big integers, number spelling and the order of members survive. That it is
 * one JSON value is checked when it is produced.
 * @param json UTF-8 bytes, not to be changed before the produce is called; or their text
 */
export function rawJson(json: Uint8Array | string): RawJson {
  return new RawJson(typeof json === 'string' ? Buffer.from(json) : Buffer.from(json.buffer, json.byteOffset, json.byteLength));
}
