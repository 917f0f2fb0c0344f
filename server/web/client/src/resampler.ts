/** Another sample rate for a stream, piece by piece: windowed-sinc interpolation, polyphase, the same whatever the pieces. */

/** Zero crossings of the sinc on either side; more are sharper and slower. */
const CROSSINGS = 48;
/** Of the Kaiser window: about 90 dB down in the stopband. */
const BETA = 9;
/** Half of the transition band, as a share of the lower rate's Nyquist frequency. */
const ROLL_OFF = 0.06;

/**
 * Resamples mono sound from one whole rate to another. Output sample `n` is at the time of input sample `n * from / to`: no delay, but
 * the newest output waits for about {@link Resampler.lookaheadSamples} of input.
 */
export class Resampler {
  /** Input that is needed beyond the time of an output sample. */
  readonly lookaheadSamples: number;
  #up: number;
  #down: number;
  #phases: Float32Array[];
  #history: Float32Array;
  /** Index, in the input, of the first sample of the history. */
  #historyStart: number;
  #received = 0;
  #made = 0;

  constructor(fromHz: number, toHz: number) {
    const divisor = greatestCommonDivisor(fromHz, toHz);
    this.#up = toHz / divisor;
    this.#down = fromHz / divisor;
    const cutoff = Math.min(1, toHz / fromHz) * (1 - ROLL_OFF);
    const half = fromHz === toHz ? 0 : Math.ceil(CROSSINGS / cutoff);
    this.lookaheadSamples = half;
    this.#phases = half === 0 ? [] : Array.from({ length: this.#up }, (_, phase) => taps(phase / this.#up, half, cutoff));
    this.#history = new Float32Array(half === 0 ? 0 : half - 1);
    this.#historyStart = 1 - half;
  }

  /** Take input of any length; returns what can be made by now. */
  push(samples: Float32Array): Float32Array<ArrayBuffer> {
    if (this.lookaheadSamples === 0) {
      return new Float32Array(samples);
    }
    this.#received += samples.length;
    const known = new Float32Array(this.#history.length + samples.length);
    known.set(this.#history);
    known.set(samples, this.#history.length);
    this.#history = known;
    return this.#make(Math.max(0, Math.ceil(((this.#received - this.lookaheadSamples) * this.#up) / this.#down)));
  }

  /** The rest, as if silence followed; in all, as long as the input. */
  flush(): Float32Array<ArrayBuffer> {
    if (this.lookaheadSamples === 0) {
      return new Float32Array(0);
    }
    const received = this.#received;
    const rest = this.push(new Float32Array(this.lookaheadSamples + 1));
    return rest.slice(0, Math.max(0, rest.length - (this.#made - Math.ceil((received * this.#up) / this.#down))));
  }

  /** Make output up to a count. */
  #make(end: number): Float32Array<ArrayBuffer> {
    const output = new Float32Array(Math.max(0, end - this.#made));
    const half = this.lookaheadSamples;
    for (let at = 0; at < output.length; at += 1) {
      const place = (this.#made + at) * this.#down;
      const phase = this.#phases[place % this.#up] as Float32Array;
      const first = Math.floor(place / this.#up) - half + 1 - this.#historyStart;
      let sum = 0;
      for (let tap = 0; tap < phase.length; tap += 1) {
        sum += (this.#history[first + tap] as number) * (phase[tap] as number);
      }
      output[at] = sum;
    }
    this.#made += output.length;
    const keepFrom = Math.floor((this.#made * this.#down) / this.#up) - half + 1;
    this.#history = this.#history.slice(Math.max(0, keepFrom - this.#historyStart));
    this.#historyStart = Math.max(keepFrom, this.#historyStart);
    return output;
  }
}

/** Weights of the input around an output sample that lies so far behind one; their sum is 1. */
function taps(fraction: number, half: number, cutoff: number): Float32Array {
  const weights = Float64Array.from({ length: 2 * half }, (_, tap) => {
    const distance = tap - half + 1 - fraction;
    const angle = Math.PI * cutoff * distance;
    const sinc = angle === 0 ? 1 : Math.sin(angle) / angle;
    return sinc * bessel(BETA * Math.sqrt(Math.max(0, 1 - (distance / half) ** 2)));
  });
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return Float32Array.from(weights, (weight) => weight / sum);
}

/** The modified Bessel function of the first kind, order 0, by its series. */
function bessel(x: number): number {
  let [sum, term] = [1, 1];
  for (let k = 1; term > 1e-12 * sum; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestCommonDivisor(one: number, other: number): number {
  return other === 0 ? one : greatestCommonDivisor(other, one % other);
}
