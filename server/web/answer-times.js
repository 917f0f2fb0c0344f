// @ts-check
/** How long each frame waited for its answer: from its last sample's being sent to its codes' being here. */

const KEPT = 125;
/** A frame that waits longer than it lasts. */
const LATE_MS = 80;

export class AnswerTimes {
  #samplesPerFrame;
  /** @type {{samples: number, atMs: number}[]} */
  #sent = [];
  /** @type {number[]} */
  #lastMs = [];
  #samples = 0;
  late = 0;

  /** @param {number} samplesPerFrame at the rate of the samples sent; need not be whole */
  constructor(samplesPerFrame) {
    this.#samplesPerFrame = samplesPerFrame;
  }

  /**
   * @param {number} samples sent now, per channel
   * @param {number} nowMs
   */
  sent(samples, nowMs) {
    this.#samples += samples;
    this.#sent.push({ samples: this.#samples, atMs: nowMs });
  }

  /**
   * @param {number} frame its index
   * @param {number} nowMs
   */
  answered(frame, nowMs) {
    const needed = (frame + 1) * this.#samplesPerFrame;
    while (this.#sent.length > 1 && this.#sent[0].samples < needed) {
      this.#sent.shift();
    }
    const waitedMs = nowMs - (this.#sent[0]?.atMs ?? nowMs);
    this.late += waitedMs > LATE_MS ? 1 : 0;
    this.#lastMs.push(waitedMs);
    if (this.#lastMs.length > KEPT) {
      this.#lastMs.shift();
    }
  }

  /** Milliseconds, of the last ten seconds; null before the first answer. */
  get summary() {
    if (this.#lastMs.length === 0) {
      return null;
    }
    const sorted = [...this.#lastMs].sort((one, other) => one - other);
    return { last: this.#lastMs[this.#lastMs.length - 1], median: sorted[sorted.length >> 1], most: sorted[sorted.length - 1] };
  }
}
