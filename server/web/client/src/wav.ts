/** WAV files of 16 bits. */

import { toInt16 } from './payload.ts';

const HEADER_BYTES = 44;

/** A mono WAV file of 16 bits. */
export function toWav(samples: Int16Array | Float32Array, sampleRateHz = 24_000): Uint8Array<ArrayBuffer> {
  const integers = samples instanceof Int16Array ? samples : toInt16(samples);
  const file = new Uint8Array(HEADER_BYTES + 2 * integers.length);
  const view = new DataView(file.buffer);
  const words = (at: number, text: string) => file.set(new TextEncoder().encode(text), at);
  words(0, 'RIFF');
  view.setUint32(4, file.length - 8, true);
  words(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, sampleRateHz, true);
  view.setUint32(28, 2 * sampleRateHz, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  words(36, 'data');
  view.setUint32(40, 2 * integers.length, true);
  file.set(new Uint8Array(integers.buffer, integers.byteOffset, integers.byteLength), HEADER_BYTES);
  return file;
}
