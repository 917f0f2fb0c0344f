// @ts-check
/** What a stream has brought so far, the oldest forgotten: codes by frame, and the outline of a waveform. */

/** Ten minutes. */
export const KEPT_FRAMES = 7_500;
export const PEAKS_PER_FRAME = 8;

/** Codes, frame by frame. */
export class CodeHistory {
  #codes;
  /** Frames that came, also those that are forgotten. */
  end = 0;

  /** @param {number} levels */
  constructor(levels) {
    this.levels = levels;
    this.#codes = new Uint16Array(KEPT_FRAMES * levels);
  }

  /** The first frame that is still there. */
  get first() {
    return Math.max(0, this.end - KEPT_FRAMES);
  }

  /** @param {Uint16Array} codes one frame */
  push(codes) {
    this.#codes.set(codes, (this.end % KEPT_FRAMES) * this.levels);
    this.end += 1;
  }

  /**
   * @param {number} frame first .. end - 1
   * @returns {Uint16Array} its codes, level 0 first
   */
  frame(frame) {
    const at = (frame % KEPT_FRAMES) * this.levels;
    return this.#codes.subarray(at, at + this.levels);
  }
}

/** The least and the greatest sample of every eighth of a frame. */
export class PeakHistory {
  #peaks = new Int16Array(2 * KEPT_FRAMES * PEAKS_PER_FRAME);
  #samplesPerPeak;
  #samples = 0;
  #least = 0;
  #greatest = 0;
  /** Peaks that are complete, also those that are forgotten. */
  end = 0;

  /** @param {number} samplesPerFrame at the rate of the samples; need not be whole */
  constructor(samplesPerFrame) {
    this.#samplesPerPeak = samplesPerFrame / PEAKS_PER_FRAME;
  }

  /** Frames so far, the last not whole. */
  get frames() {
    return this.end / PEAKS_PER_FRAME;
  }

  /**
   * @param {Int16Array} samples
   * @param {number} [stride] takes every so many-th sample: the number of channels
   */
  push(samples, stride = 1) {
    for (let at = 0; at < samples.length; at += stride) {
      this.#least = Math.min(this.#least, samples[at]);
      this.#greatest = Math.max(this.#greatest, samples[at]);
      this.#samples += 1;
      if (this.#samples >= (this.end + 1) * this.#samplesPerPeak) {
        const to = 2 * (this.end % (KEPT_FRAMES * PEAKS_PER_FRAME));
        this.#peaks[to] = this.#least;
        this.#peaks[to + 1] = this.#greatest;
        this.#least = this.#greatest = 0;
        this.end += 1;
      }
    }
  }

  /**
   * @param {number} index first .. end - 1
   * @returns {[least: number, greatest: number]} of full scale 1
   */
  peak(index) {
    const at = 2 * (index % (KEPT_FRAMES * PEAKS_PER_FRAME));
    return [this.#peaks[at] / 32768, this.#peaks[at + 1] / 32768];
  }
}
