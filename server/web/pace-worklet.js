// @ts-check
/**
 * The audio clock, for sending a file at the speed of sound: unlike a timer it runs on when the page is in the background,
 * and it is the clock that the player plays by.
 *
 * From it: the number of samples gone by, every `chunkSamples`. To it: anything, which stops it.
 */
class PaceProcessor extends AudioWorkletProcessor {
  /** @param {{processorOptions: {chunkSamples: number}}} options */
  constructor(options) {
    super();
    this.chunkSamples = options.processorOptions.chunkSamples;
    this.elapsed = 0;
    this.told = 0;
    this.stopped = false;
    this.port.onmessage = () => {
      this.stopped = true;
    };
  }

  /**
   * @param {Float32Array[][]} _inputs
   * @param {Float32Array[][]} outputs
   */
  process(_inputs, [[silence]]) {
    this.elapsed += silence.length;
    if (this.elapsed - this.told >= this.chunkSamples) {
      this.told = this.elapsed;
      this.port.postMessage(this.elapsed);
    }
    return !this.stopped;
  }
}

registerProcessor('mimi-pace', PaceProcessor);
