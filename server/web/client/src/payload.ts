/** Arrays to the bytes of the wire. */

import { refuse } from './errors.ts';
import type { Asked } from './settings.ts';

/**
 * Bytes as on the wire (`Uint8Array`), or numbers: audio as `Int16Array` or as `Float32Array` of full scale -1 .. 1, interleaved where
 * there are two channels; codes as `Uint16Array`, frame after frame.
 */
export type Payload = Uint8Array | Int16Array | Float32Array | Uint16Array;

/**
 * Throws `input_type`: numbers of another kind than the mode takes; `input_shape`: no whole samples or frames; `non_finite_input`;
 * `code_range`: a code outside the codebook.
 */
export function payloadBytes(data: Payload, asked: Asked, levels: number, codebookEntries: number): Uint8Array<ArrayBuffer> {
  if (data instanceof Uint8Array) {
    return new Uint8Array(data);
  }
  if (asked.mode === 'decode') {
    return codeBytes(data, levels, codebookEntries);
  }
  if (data instanceof Uint16Array) {
    throw refuse('input_type', 'pcm', 'Uint16Array', 'Int16Array or Float32Array');
  }
  if (data.length % asked.channels) {
    throw refuse('input_shape', 'pcm', `${data.length} samples`, `a multiple of ${asked.channels}, one of each channel`);
  }
  if (data instanceof Float32Array && !data.every(Number.isFinite)) {
    throw refuse('non_finite_input', 'pcm', 'NaN or infinity', 'finite samples');
  }
  if (asked.sampleFormat === 's16le') {
    return bytesOf(data instanceof Int16Array ? data : toInt16(data));
  }
  return bytesOf(data instanceof Float32Array ? data : toFloat32(data));
}

/** Floats of -1 .. 1 to 16-bit samples, to the nearest, ties to even, as the library does; what lies outside is clamped. */
export function toInt16(samples: Float32Array): Int16Array<ArrayBuffer> {
  return Int16Array.from(samples, (value) => {
    const scaled = Math.max(-1, Math.min(1, value)) * 32768;
    const rounded = Math.round(scaled);
    const even = rounded - scaled === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
    return Math.min(32767, even);
  });
}

/** 16-bit samples to floats of -1 .. 1. */
export function toFloat32(samples: Int16Array): Float32Array<ArrayBuffer> {
  return Float32Array.from(samples, (value) => value / 32768);
}

function codeBytes(codes: Payload, levels: number, entries: number): Uint8Array<ArrayBuffer> {
  if (!(codes instanceof Uint16Array)) {
    throw refuse('input_type', 'codes', codes.constructor.name, 'Uint16Array');
  }
  if (codes.length % levels) {
    throw refuse('input_shape', 'codes', `${codes.length} numbers`, `a multiple of ${levels}, one of each level`);
  }
  const outside = codes.findIndex((code) => code >= entries);
  if (outside >= 0) {
    const place = `codes[level ${outside % levels}, frame ${Math.floor(outside / levels)}]`;
    throw refuse('code_range', place, String(codes[outside]), `0 .. ${entries - 1}`);
  }
  return bytesOf(codes);
}

/** The bytes of numbers, in the byte order of the machine, which is little-endian wherever JavaScript runs. */
function bytesOf(numbers: Int16Array | Float32Array | Uint16Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength));
}
