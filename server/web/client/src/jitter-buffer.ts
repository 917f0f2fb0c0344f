/**
 * Between a network that delivers unevenly and a loudspeaker that takes evenly: a ring buffer that never clicks.
 *
 * It begins once `targetMs` are there. Where it is about to run dry it fades out, waits for twice as much as before, and fades in. Where
 * more waits than is needed, for longer than a moment, it skips by a cross-fade; it aims lower again after a quiet time. Where
 * nothing of this happens, the output is the input, sample for sample. All memory is taken at the start: it may run on an audio
 * thread.
 */

export interface JitterBufferOptions {
  sampleRateHz: number;
  /** Played side by side and in step; 1 if absent. */
  channels?: number;
  /** What is there before it begins; 160 if absent, two frames. */
  targetMs?: number;
  /** What the target grows to at most; 1280 if absent. */
  mostTargetMs?: number;
  /** What it holds at most; beyond that the oldest goes. 8000 if absent. */
  capacityMs?: number;
}

export interface JitterReport {
  /** Samples of the input that were played, or faded. */
  playedSamples: number;
  waitingSamples: number;
  targetSamples: number;
  /** Times that it faded out because nothing was there. */
  underruns: number;
  /** Samples left out because too many waited. */
  skippedSamples: number;
}

const FADE_MS = 5;
/** How much more than the target may wait before some of it is skipped. */
const SLACK_MS = 120;
/** How long the least that waits is watched before that. */
const WATCH_MS = 2_000;
/** Time without an underrun after which the target shrinks, and by how much. */
const QUIET_MS = 10_000;
const SHRINK_MS = 20;

export class JitterBuffer {
  #rings: Float32Array[];
  #tails: Float32Array[];
  #fadeSamples: number;
  #leastTarget: number;
  #mostTarget: number;
  #target: number;
  #slack: number;
  #watch: number;
  #quiet: number;
  #shrink: number;
  #written = 0;
  #read = 0;
  #skipped = 0;
  #underruns = 0;
  #isEnded = false;
  #state: 'filling' | 'playing' | 'fading' = 'filling';
  /** Samples of the present fade that are done; a fade-out takes `#fadeLength`. */
  #fadeDone = 0;
  #fadeLength = 0;
  /** Samples of the fade-in, or of the cross-fade from the tail, that are still to come. */
  #fadeInLeft = 0;
  #bridgeLeft = 0;
  #watched = 0;
  #leastWaiting = Infinity;
  #sinceUnderrun = 0;

  constructor({ sampleRateHz, channels = 1, targetMs = 160, mostTargetMs = 1_280, capacityMs = 8_000 }: JitterBufferOptions) {
    const samples = (ms: number) => Math.round((ms * sampleRateHz) / 1000);
    this.#fadeSamples = samples(FADE_MS);
    this.#rings = Array.from({ length: channels }, () => new Float32Array(samples(capacityMs)));
    this.#tails = Array.from({ length: channels }, () => new Float32Array(this.#fadeSamples));
    this.#target = this.#leastTarget = samples(targetMs);
    this.#mostTarget = samples(mostTargetMs);
    this.#slack = samples(SLACK_MS);
    this.#watch = samples(WATCH_MS);
    this.#quiet = samples(QUIET_MS);
    this.#shrink = samples(SHRINK_MS);
  }

  get report(): JitterReport {
    return {
      playedSamples: this.#read - this.#skipped,
      waitingSamples: this.#waiting,
      targetSamples: this.#target,
      underruns: this.#underruns,
      skippedSamples: this.#skipped,
    };
  }

  /** Whether everything that came before {@link end} is played. */
  get isDrained(): boolean {
    return this.#isEnded && this.#waiting === 0;
  }

  /** Take samples, as many for each channel. */
  push(channels: readonly Float32Array[]): void {
    const capacity = (this.#rings[0] as Float32Array).length;
    const count = (channels[0] as Float32Array).length;
    const from = Math.max(0, count - capacity);
    const tooMany = this.#waiting + count - from - capacity;
    if (tooMany > 0) {
      this.#skip(Math.min(tooMany + this.#fadeSamples, this.#waiting));
    }
    this.#rings.forEach((ring, index) => {
      const samples = channels[index] as Float32Array;
      for (let at = from; at < count; at += 1) {
        ring[(this.#written + at - from) % capacity] = samples[at] as number;
      }
    });
    this.#written += count - from;
  }

  /** No more samples will come: what is there is played to its end, without a fade. */
  end(): void {
    this.#isEnded = true;
  }

  /** Fill a block of output. */
  pull(outputs: readonly Float32Array[]): void {
    const count = (outputs[0] as Float32Array).length;
    for (let at = 0; at < count; at += 1) {
      this.#step(outputs, at);
    }
    if (this.#state === 'playing') {
      this.#look(count);
    }
  }

  get #waiting(): number {
    return this.#written - this.#read;
  }

  #step(outputs: readonly Float32Array[], at: number): void {
    if (this.#state === 'filling' && this.#waiting > 0 && (this.#isEnded || this.#waiting >= this.#target)) {
      this.#state = 'playing';
    }
    if (this.#state === 'playing' && !this.#isEnded && this.#waiting <= this.#fadeSamples) {
      this.#state = 'fading';
      this.#fadeLength = this.#waiting;
      this.#fadeDone = 0;
    }
    if (this.#state === 'filling' || this.#waiting === 0) {
      outputs.forEach((output) => (output[at] = 0));
      return;
    }
    const gain = this.#gain();
    const bridge = this.#bridgeLeft > 0 ? raised(this.#bridgeLeft / this.#fadeSamples) : 0;
    outputs.forEach((output, index) => {
      const ring = this.#rings[index] as Float32Array;
      const value = ring[this.#read % ring.length] as number;
      const tail = bridge > 0 ? ((this.#tails[index] as Float32Array)[this.#fadeSamples - this.#bridgeLeft] as number) : 0;
      output[at] = bridge > 0 ? gain * (bridge * tail + (1 - bridge) * value) : gain === 1 ? value : gain * value;
    });
    this.#bridgeLeft = Math.max(0, this.#bridgeLeft - 1);
    this.#read += 1;
    if (this.#state === 'fading' && this.#fadeDone === this.#fadeLength) {
      this.#runDry();
    }
  }

  #gain(): number {
    let gain = 1;
    if (this.#fadeInLeft > 0) {
      gain = 1 - raised(this.#fadeInLeft / this.#fadeSamples);
      this.#fadeInLeft -= 1;
    }
    if (this.#state === 'fading') {
      this.#fadeDone += 1;
      gain *= 1 - raised(this.#fadeDone / this.#fadeLength);
    }
    return gain;
  }

  #runDry(): void {
    this.#state = 'filling';
    this.#underruns += 1;
    this.#target = Math.min(2 * this.#target, this.#mostTarget);
    this.#fadeInLeft = this.#fadeSamples;
    this.#bridgeLeft = 0;
    this.#sinceUnderrun = 0;
    this.#watched = 0;
    this.#leastWaiting = Infinity;
  }

  /** Watch how much waits at least, and skip what is not needed. */
  #look(count: number): void {
    this.#watched += count;
    this.#sinceUnderrun += count;
    this.#leastWaiting = Math.min(this.#leastWaiting, this.#waiting);
    if (this.#sinceUnderrun >= this.#quiet) {
      this.#sinceUnderrun = 0;
      this.#target = Math.max(this.#leastTarget, this.#target - this.#shrink);
    }
    if (this.#watched >= this.#watch) {
      if (!this.#isEnded && this.#leastWaiting > this.#target + this.#slack) {
        this.#skip(this.#leastWaiting - this.#target);
      }
      this.#watched = 0;
      this.#leastWaiting = Infinity;
    }
  }

  /** Go on so many samples later, by a cross-fade from what would have come. */
  #skip(count: number): void {
    if (this.#state !== 'filling') {
      // What would have come: a cross-fade that is under way goes on in it.
      this.#tails.forEach((tail, index) => {
        const ring = this.#rings[index] as Float32Array;
        for (let at = 0; at < tail.length; at += 1) {
          const value = at < this.#waiting ? (ring[(this.#read + at) % ring.length] as number) : 0;
          const left = this.#bridgeLeft - at;
          const bridge = left > 0 ? raised(left / this.#fadeSamples) : 0;
          tail[at] = bridge > 0 ? bridge * (tail[this.#fadeSamples - left] as number) + (1 - bridge) * value : value;
        }
      });
      this.#bridgeLeft = this.#fadeSamples;
    }
    this.#read += count;
    this.#skipped += count;
  }
}

/** A smooth way from 0 to 1. */
function raised(share: number): number {
  return 0.5 - 0.5 * Math.cos(Math.PI * share);
}
