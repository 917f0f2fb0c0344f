/** Short-time spectra of a sound, column by column, kept once they are made. */

import type { Sound } from './take.ts';

export const COLUMNS_PER_FRAME = 4;
export const ROWS = 72;
const HOP_SAMPLES = 480;
const WINDOW_SAMPLES = 1_024;
const FLOOR_DB = -90;
const TOP_DB = -20;
const NYQUIST_HZ = 12_000;

const WINDOW = Float32Array.from(
  { length: WINDOW_SAMPLES },
  (_, at) => 0.5 - 0.5 * Math.cos((2 * Math.PI * at) / WINDOW_SAMPLES),
);
/** The bin where each row begins; rows are even on the mel scale, from low to high. */
const EDGES = Array.from(
  { length: ROWS + 1 },
  (_, row) => (fromMel((row / ROWS) * toMel(NYQUIST_HZ)) / NYQUIST_HZ) * (WINDOW_SAMPLES / 2),
);

export class Spectrum {
  #sound: Sound;
  #columns: Uint8Array[] = [];

  constructor(sound: Sound) {
    this.#sound = sound;
  }

  /** Columns whose sound is all there. */
  get end(): number {
    return Math.max(0, Math.floor((this.#sound.length - WINDOW_SAMPLES) / HOP_SAMPLES) + 1);
  }

  /** Loudness by row, 0 .. 255, the lowest frequency first. */
  column(index: number): Uint8Array {
    return (this.#columns[index] ??= this.#analysed(index * HOP_SAMPLES));
  }

  #analysed(start: number): Uint8Array {
    const [real, imaginary] = [new Float64Array(WINDOW_SAMPLES), new Float64Array(WINDOW_SAMPLES)];
    this.#sound
      .view(start, start + WINDOW_SAMPLES)
      .forEach((value, at) => (real[at] = (value / 32768) * (WINDOW[at] as number)));
    transform(real, imaginary);
    return Uint8Array.from({ length: ROWS }, (_, row) => {
      const [from, to] = [
        Math.floor(EDGES[row] as number),
        Math.max(Math.ceil(EDGES[row + 1] as number), Math.floor(EDGES[row] as number) + 1),
      ];
      let most = 0;
      for (let bin = from; bin < to; bin += 1) {
        most = Math.max(most, (real[bin] as number) ** 2 + (imaginary[bin] as number) ** 2);
      }
      const db = 10 * Math.log10(most + 1e-12) - 20 * Math.log10(WINDOW_SAMPLES / 4);
      return Math.max(0, Math.min(255, (255 * (db - FLOOR_DB)) / (TOP_DB - FLOOR_DB)));
    });
  }
}

/** The discrete Fourier transform, in place; a power of two. */
export function transform(real: Float64Array, imaginary: Float64Array): void {
  const size = real.length;
  for (let at = 1, other = 0; at < size; at += 1) {
    let bit = size >> 1;
    for (; other & bit; bit >>= 1) {
      other ^= bit;
    }
    other ^= bit;
    if (at < other) {
      [real[at], real[other]] = [real[other] as number, real[at] as number];
      [imaginary[at], imaginary[other]] = [imaginary[other] as number, imaginary[at] as number];
    }
  }
  for (let span = 2; span <= size; span *= 2) {
    for (let first = 0; first < size; first += span) {
      for (let at = 0; at < span / 2; at += 1) {
        butterfly(real, imaginary, first + at, first + at + span / 2, (-2 * Math.PI * at) / span);
      }
    }
  }
}

function butterfly(real: Float64Array, imaginary: Float64Array, low: number, high: number, angle: number): void {
  const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
  const [r, i] = [real[high] as number, imaginary[high] as number];
  const [turnedReal, turnedImaginary] = [r * cosine - i * sine, r * sine + i * cosine];
  real[high] = (real[low] as number) - turnedReal;
  imaginary[high] = (imaginary[low] as number) - turnedImaginary;
  real[low] = (real[low] as number) + turnedReal;
  imaginary[low] = (imaginary[low] as number) + turnedImaginary;
}

function toMel(hz: number): number {
  return 2595 * Math.log10(1 + hz / 700);
}

function fromMel(mel: number): number {
  return 700 * (10 ** (mel / 2595) - 1);
}
