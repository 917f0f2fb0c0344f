// @ts-check
/**
 * The protocol mimi.v1 as a browser needs it: addresses, frames, texts. No sockets here. Normative: docs/protocol.md.
 */

export const SUBPROTOCOL = 'mimi.v1';
export const KIND_CODES = 1;
export const KIND_PCM = 2;
const VERSION = 1;
const HEADER_BYTES = 16;

/**
 * @typedef {object} StreamSettings
 * @property {'encode' | 'echo'} mode `echo` comes with the codes of each frame
 * @property {number} levels 1 .. the model's
 * @property {number} sample_rate Hz, of the PCM in both directions, 8000 .. 96000
 * @property {number} channels of the PCM sent, 1 or 2
 * @property {string} token leave to stream, where the service asks for a key; else empty
 */

/**
 * @typedef {object} Frame one binary message of the server
 * @property {number} kind KIND_CODES or KIND_PCM
 * @property {number} sequence counts the messages of the stream
 * @property {number} position first sample of the frame, at the codec's rate
 * @property {ArrayBuffer} payload little-endian u16[levels], or s16 samples
 */

/**
 * @typedef {object} ServerError the server's `error` message
 * @property {string} code
 * @property {string} reason one fixed sentence for the code
 * @property {string} message what was found and what was expected
 * @property {number} [retry_after_ms]
 */

/**
 * The address of a stream; the page may be served under any path and behind TLS.
 * @param {string} base address of the page
 * @param {StreamSettings} settings
 * @returns {URL}
 */
export function streamUrl(base, settings) {
  const url = new URL('v1/stream', base);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  url.search = String(
    new URLSearchParams({
      mode: settings.mode,
      levels: String(settings.levels),
      sample_rate: String(settings.sample_rate),
      channels: String(settings.channels),
      format: 's16le',
      ...(settings.mode === 'echo' ? { echo_codes: 'on' } : {}),
      ...(settings.token ? { token: settings.token } : {}),
    }),
  );
  return url;
}

/**
 * Read a binary message.
 * @param {ArrayBuffer} message
 * @returns {Frame}
 * @throws {RangeError} too short, or of another version
 */
export function parseFrame(message) {
  const view = new DataView(message);
  if (view.byteLength < HEADER_BYTES || view.getUint8(0) !== VERSION) {
    throw new RangeError(`not a frame of version ${VERSION}: ${message.byteLength} bytes`);
  }
  return {
    kind: view.getUint8(1),
    sequence: view.getUint32(4, true),
    position: Number(view.getBigUint64(8, true)),
    payload: message.slice(HEADER_BYTES),
  };
}

/**
 * Floats of -1 .. 1 to 16-bit samples; what lies outside is clamped.
 * @param {Float32Array} samples
 * @returns {Int16Array<ArrayBuffer>}
 */
export function toInt16(samples) {
  const integers = new Int16Array(samples.length);
  for (let at = 0; at < samples.length; at += 1) {
    integers[at] = Math.max(-32768, Math.min(32767, Math.round(samples[at] * 32768)));
  }
  return integers;
}
