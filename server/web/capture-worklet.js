// @ts-check
/**
 * Takes the microphone at whatever rate the hardware has, mixes it to one channel and hands it over as 16-bit samples in
 * pieces of `chunkSamples`. Resampling is the server's, which keeps its state over the whole stream.
 *
 * To it: `'stop'`. From it: `Int16Array`s, and after `'stop'` the last one, shorter, then `'stopped'`.
 */
class CaptureProcessor extends AudioWorkletProcessor {
  /** @param {{processorOptions: {chunkSamples: number}}} options */
  constructor(options) {
    super();
    this.chunk = new Int16Array(options.processorOptions.chunkSamples);
    this.filled = 0;
    this.stopped = false;
    this.port.onmessage = () => this.#stop();
  }

  /** @param {Float32Array[][]} inputs */
  process([channels]) {
    if (this.stopped) {
      return false;
    }
    const samples = channels[0]?.length ?? 0;
    for (let at = 0; at < samples; at += 1) {
      let sum = 0;
      for (const channel of channels) {
        sum += channel[at];
      }
      this.chunk[this.filled] = Math.max(-32768, Math.min(32767, Math.round((sum / channels.length) * 32768)));
      this.filled += 1;
      if (this.filled === this.chunk.length) {
        this.#hand();
      }
    }
    return true;
  }

  #hand() {
    this.port.postMessage(this.chunk.slice(0, this.filled));
    this.filled = 0;
  }

  #stop() {
    if (!this.stopped) {
      this.stopped = true;
      this.#hand();
      this.port.postMessage('stopped');
    }
  }
}

registerProcessor('mimi-capture', CaptureProcessor);
