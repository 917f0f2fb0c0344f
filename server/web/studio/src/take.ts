/** What was said, what became of it, and when: everything that the page shows, plays and saves. */

import { firstLevels, type Codes } from 'mimi-client';

export const RATE_HZ = 24_000;
export const FRAME_SAMPLES = 1_920;
export const FRAME_S = FRAME_SAMPLES / RATE_HZ;
export const PEAKS_PER_FRAME = 8;
/** Ten minutes. */
export const MOST_FRAMES = 7_500;

const PEAK_SAMPLES = FRAME_SAMPLES / PEAKS_PER_FRAME;

/** 16-bit samples that grow at their end. */
export class Sound {
  #samples = new Int16Array(10 * RATE_HZ);
  length = 0;

  static of(samples: Int16Array): Sound {
    const made = new Sound();
    made.push(samples);
    return made;
  }

  push(samples: Int16Array): void {
    const needed = this.length + samples.length;
    if (needed > this.#samples.length) {
      const larger = new Int16Array(Math.max(needed, 2 * this.#samples.length));
      larger.set(this.#samples.subarray(0, this.length));
      this.#samples = larger;
    }
    this.#samples.set(samples, this.length);
    this.length = needed;
  }

  get frames(): number {
    return this.length / FRAME_SAMPLES;
  }

  /** The samples themselves; good until the next {@link push}. */
  view(from = 0, to = this.length): Int16Array<ArrayBuffer> {
    return this.#samples.subarray(Math.min(from, this.length), Math.min(to, this.length));
  }

  /** One frame as floats; silence where there is no sound. */
  frame(index: number): Float32Array<ArrayBuffer> {
    const samples = new Float32Array(FRAME_SAMPLES);
    this.view(index * FRAME_SAMPLES, (index + 1) * FRAME_SAMPLES).forEach((value, at) => (samples[at] = value / 32768));
    return samples;
  }

  /** The least and the greatest sample of an eighth of a frame, of full scale 1. */
  peak(index: number): [least: number, greatest: number] {
    let [least, greatest] = [0, 0];
    for (const value of this.view(index * PEAK_SAMPLES, (index + 1) * PEAK_SAMPLES)) {
      least = value < least ? value : least;
      greatest = value > greatest ? value : greatest;
    }
    return [least / 32768, greatest / 32768];
  }
}

export class Take {
  /** What saved files are called. */
  readonly name: string;
  /** Of the codes; how many of them are heard is another matter. */
  readonly levels: number;
  /** `null` where only codes were given. */
  input: Sound | null;
  output = new Sound();
  /** How long each frame waited for its codes; `null` where that is not known. */
  readonly latenciesMs: (number | null)[] = [];
  frames = 0;
  #codes: Uint16Array<ArrayBuffer>;

  constructor(name: string, levels: number, { withInput = true } = {}) {
    this.name = name;
    this.levels = levels;
    this.input = withInput ? new Sound() : null;
    this.#codes = new Uint16Array(MOST_FRAMES * levels);
  }

  /** A take of codes alone. */
  static ofCodes(name: string, { levels, frames, data }: Codes): Take {
    const take = new Take(name, levels, { withInput: false });
    for (let frame = 0; frame < Math.min(frames, MOST_FRAMES); frame += 1) {
      take.pushCodes(data.subarray(frame * levels, (frame + 1) * levels), null);
    }
    return take;
  }

  get isFull(): boolean {
    return this.frames >= MOST_FRAMES || (this.input?.frames ?? 0) >= MOST_FRAMES;
  }

  /** True length, the padding of the last frame left out. */
  get samples(): number {
    return Math.min(this.input?.length ?? Infinity, this.frames * FRAME_SAMPLES);
  }

  pushCodes(codes: Uint16Array, latencyMs: number | null): void {
    if (this.frames < MOST_FRAMES) {
      this.#codes.set(codes, this.frames * this.levels);
      this.latenciesMs.push(latencyMs);
      this.frames += 1;
    }
  }

  /** The codes of a frame, level 0 first. */
  frame(index: number): Uint16Array<ArrayBuffer> {
    return this.#codes.subarray(index * this.levels, (index + 1) * this.levels);
  }

  /** The codes of some frames, the first so many levels of them. */
  codes(levels: number, from = 0): Codes {
    const data = this.#codes.slice(from * this.levels, this.frames * this.levels);
    return firstLevels({ levels: this.levels, frames: this.frames - from, samples: null, data }, levels);
  }
}
