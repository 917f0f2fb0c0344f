// @ts-check
/**
 * Plays samples in the order they came, through a ring buffer: no seams between pieces, whatever their lengths.
 *
 * It starts once `prefillSamples` are there. When the ring runs dry it is silent, counts a gap, and from then on waits for more
 * before it goes on, so that a shaky connection finds its own delay.
 *
 * To it: `Int16Array`s, and `'end'` when none follow. From it: a `PlayerReport` ten times a second, and `'drained'` when the last
 * sample after `'end'` is played.
 */
class PlayerProcessor extends AudioWorkletProcessor {
  /** @param {{processorOptions: {capacitySamples: number, prefillSamples: number}}} options */
  constructor(options) {
    super();
    const { capacitySamples, prefillSamples } = options.processorOptions;
    this.ring = new Float32Array(capacitySamples);
    this.prefillSamples = prefillSamples;
    this.mostPrefillSamples = capacitySamples / 4;
    this.written = 0;
    this.played = 0;
    this.gaps = 0;
    this.dropped = 0;
    this.playing = false;
    this.ended = false;
    this.drained = false;
    this.sinceReport = 0;
    this.port.onmessage = (event) => this.#take(event.data);
  }

  /**
   * @param {Float32Array[][]} _inputs
   * @param {Float32Array[][]} outputs
   */
  process(_inputs, [[output]]) {
    this.playing ||= this.ended || this.#waiting() >= this.prefillSamples;
    if (this.playing) {
      this.#play(output);
    }
    this.sinceReport += output.length;
    if (this.drained || this.sinceReport >= sampleRate / 10) {
      this.#report();
    }
    if (this.drained) {
      this.port.postMessage('drained');
    }
    return !this.drained;
  }

  #waiting() {
    return this.written - this.played;
  }

  /** @param {Float32Array} output */
  #play(output) {
    const count = Math.min(this.#waiting(), output.length);
    for (let at = 0; at < count; at += 1) {
      output[at] = this.ring[(this.played + at) % this.ring.length];
    }
    this.played += count;
    if (count < output.length) {
      this.playing = false;
      this.drained = this.ended;
      if (!this.ended) {
        this.gaps += 1;
        this.prefillSamples = Math.min(2 * this.prefillSamples, this.mostPrefillSamples);
      }
    }
  }

  /** @param {Int16Array | 'end'} message */
  #take(message) {
    if (message === 'end') {
      this.ended = true;
      return;
    }
    const count = Math.min(message.length, this.ring.length - this.#waiting());
    for (let at = 0; at < count; at += 1) {
      this.ring[(this.written + at) % this.ring.length] = message[at] / 32768;
    }
    this.written += count;
    this.dropped += message.length - count;
  }

  #report() {
    this.sinceReport = 0;
    this.port.postMessage({
      playedSamples: this.played,
      waitingSamples: this.#waiting(),
      gaps: this.gaps,
      droppedSamples: this.dropped,
    });
  }
}

registerProcessor('mimi-player', PlayerProcessor);
