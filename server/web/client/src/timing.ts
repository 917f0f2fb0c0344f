/** Time on the line: when input is due, how long an answer takes, when to try again. Clocks are the caller's. */

/** Answers that latency is told of. */
const RECENT_FRAMES = 2_048;
/** A resampler's arithmetic must not make a whole frame look like one and a bit. */
const TINY = 1e-6;

/** Holds input back to real time, as a microphone would: a chunk is due when its last sample would have been heard. */
export class Pacer {
  #unitsPerS: number;
  #epoch = -1;
  #startMs = 0;

  /** @param unitsPerS rate of what positions count */
  constructor(unitsPerS: number) {
    this.#unitsPerS = unitsPerS;
  }

  /** How long to wait before a chunk is sent that ends at this position; 0 where it is due. */
  delayMs(epoch: number, endUnits: number, nowMs: number): number {
    if (epoch > this.#epoch) {
      this.#epoch = epoch;
      this.#startMs = nowMs;
    }
    return epoch < this.#epoch ? 0 : Math.max(0, this.#startMs + (1000 * endUnits) / this.#unitsPerS - nowMs);
  }
}

/** Time from sending the last input of a frame until its answer, and how much input is not answered yet. */
export class LatencyMeter {
  /** Input sent since the start or the last reset, in frames; padding of a flush included. */
  sentFrames = 0;
  answeredFrames = 0;
  #unitsPerFrame: number;
  #recentMs: number[] = [];
  #paddingFrames = 0;
  #sent: { frames: number; atMs: number }[] = [];

  /** @param unitsPerFrame input that makes a frame; with resampled audio not a whole number */
  constructor(unitsPerFrame: number) {
    this.#unitsPerFrame = unitsPerFrame;
  }

  /** Go on from a position: after a reset from 0, after a resume from what the service holds. */
  restart(units = 0): void {
    this.#paddingFrames = units === 0 ? 0 : this.#paddingFrames;
    this.#sent = [];
    this.sentFrames = units / this.#unitsPerFrame + this.#paddingFrames;
    this.answeredFrames = units === 0 ? 0 : Math.min(this.answeredFrames, Math.floor(this.sentFrames));
  }

  sent(units: number, nowMs: number): void {
    this.sentFrames += units / this.#unitsPerFrame;
    this.#sent.push({ frames: this.sentFrames, atMs: nowMs });
  }

  /** Count the padding that a flush makes up to a whole frame. */
  flushSent(nowMs: number): void {
    const whole = Math.ceil(this.sentFrames - TINY);
    this.#paddingFrames += Math.max(0, whole - this.sentFrames);
    this.sentFrames = Math.max(whole, this.sentFrames);
    this.#sent.push({ frames: this.sentFrames, atMs: nowMs });
  }

  /** Take the answer of a frame, by its index; its latency in ms, or `null` where its input was sent earlier. */
  answered(frame: number, nowMs: number): number | null {
    this.answeredFrames = Math.max(this.answeredFrames, frame + 1);
    let passed = 0;
    while ((this.#sent[passed]?.frames ?? Infinity) < frame + 1 - TINY) {
      passed += 1;
    }
    this.#sent.splice(0, passed);
    const [first] = this.#sent;
    if (!first) {
      return null;
    }
    this.#recentMs.push(nowMs - first.atMs);
    if (this.#recentMs.length > RECENT_FRAMES) {
      this.#recentMs.shift();
    }
    return nowMs - first.atMs;
  }

  /** Frames that were sent and are not answered; the last may not be whole. */
  get inFlightFrames(): number {
    return Math.max(0, this.sentFrames - this.answeredFrames);
  }

  /** A percentile of the recent latencies; `null` before the first. */
  percentileMs(percent: number): number | null {
    const sorted = [...this.#recentMs].sort((one, other) => one - other);
    return sorted[Math.min(sorted.length - 1, Math.floor((percent / 100) * sorted.length))] ?? null;
  }
}

/** Waits between tries: evenly at random from zero up to a bound that doubles, so that clients spread out. */
export function* delaysMs(firstMs: number, longestMs: number, random: () => number = Math.random): Generator<number, never> {
  for (let boundMs = firstMs; ; boundMs = Math.min(longestMs, 2 * boundMs)) {
    yield random() * boundMs;
  }
}
