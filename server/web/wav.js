// @ts-check

const PCM = 1;
const EXTENSIBLE = 0xfffe;

/**
 * @typedef {object} Wav
 * @property {number} rateHz
 * @property {number} channels
 * @property {Int16Array<ArrayBuffer> | null} samples interleaved; null where the file has other samples than 16-bit PCM
 */

/**
 * Read a WAV file. Browsers decode them too, but not all with the same scale from integers to floats.
 * @param {ArrayBuffer} bytes
 * @returns {Wav | null} null where it is no WAV file, or a broken one
 */
export function readWav(bytes) {
  const view = new DataView(bytes);
  const name = (/** @type {number} */ at) => String.fromCharCode(...new Uint8Array(bytes, at, 4));
  if (bytes.byteLength < 12 || name(0) !== 'RIFF' || name(8) !== 'WAVE') {
    return null;
  }
  /** @type {{ rateHz: number, channels: number, plain: boolean } | null} */
  let format = null;
  for (let at = 12; at + 8 <= bytes.byteLength;) {
    const [kind, size, content] = [name(at), view.getUint32(at + 4, true), at + 8];
    if (kind === 'fmt ' && content + 16 <= bytes.byteLength) {
      const tag = view.getUint16(content, true);
      const inner = tag === EXTENSIBLE && content + 26 <= bytes.byteLength ? view.getUint16(content + 24, true) : tag;
      format = {
        rateHz: view.getUint32(content + 4, true),
        channels: view.getUint16(content + 2, true),
        plain: inner === PCM && view.getUint16(content + 14, true) === 16,
      };
    } else if (kind === 'data' && format) {
      const { rateHz, channels, plain } = format;
      // A recorder that was cut off leaves a size that promises more than there is.
      const length = Math.floor(Math.min(size, bytes.byteLength - content) / (2 * channels)) * channels;
      return { rateHz, channels, samples: plain ? new Int16Array(bytes.slice(content, content + 2 * length)) : null };
    }
    at = content + size + (size % 2);
  }
  return null;
}
