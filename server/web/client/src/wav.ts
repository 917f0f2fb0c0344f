/** WAV files of 16 bits. */

import { toInt16 } from './payload.ts';

const HEADER_BYTES = 44;
const PCM = 1;
const EXTENSIBLE = 0xfffe;

/** Sound of a WAV file as it is in it. */
export interface WavSound {
  sampleRateHz: number;
  channels: number;
  /** Interleaved. */
  samples: Int16Array<ArrayBuffer>;
}

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
  view.setUint16(20, PCM, true);
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

/** Read a WAV file of 16 bits; `null` for every other file, which a browser may know how to read. */
export function parseWav(file: Uint8Array): WavSound | null {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const word = (at: number) => String.fromCharCode(...file.subarray(at, at + 4));
  if (file.length < HEADER_BYTES || word(0) !== 'RIFF' || word(8) !== 'WAVE') {
    return null;
  }
  let format: { sampleRateHz: number; channels: number } | null = null;
  for (let at = 12; at + 8 <= file.length;) {
    const [name, start, length] = [word(at), at + 8, view.getUint32(at + 4, true)];
    if (name === 'fmt ' && length >= 16 && start + 16 <= file.length) {
      const isPcm = [PCM, EXTENSIBLE].includes(view.getUint16(start, true)) && view.getUint16(start + 14, true) === 16;
      format = isPcm ? { sampleRateHz: view.getUint32(start + 4, true), channels: view.getUint16(start + 2, true) } : null;
    }
    if (name === 'data' && format && format.channels > 0 && format.sampleRateHz > 0) {
      const end = Math.min(start + length, file.length);
      const whole = Math.floor((end - start) / (2 * format.channels)) * format.channels;
      return { ...format, samples: new Int16Array(file.slice(start, start + 2 * whole).buffer) };
    }
    at = start + length + (length % 2);
  }
  return null;
}
