/**
 * Takes the microphone at whatever rate the hardware has, mixes it to one channel and hands it over in pieces of `chunkSamples`.
 *
 * To it: anything, to stop. From it: `Float32Array`s, and after that the last one, shorter, then `'stopped'`.
 */
class CaptureProcessor extends AudioWorkletProcessor {
  #chunk: Float32Array;
  #filled = 0;
  #isStopped = false;

  constructor(options: { processorOptions: { chunkSamples: number } }) {
    super();
    this.#chunk = new Float32Array(options.processorOptions.chunkSamples);
    this.port.onmessage = () => this.#stop();
  }

  process([channels = []]: Float32Array[][]): boolean {
    const samples = this.#isStopped ? 0 : (channels[0]?.length ?? 0);
    for (let at = 0; at < samples; at += 1) {
      let sum = 0;
      for (const channel of channels) {
        sum += channel[at] as number;
      }
      this.#chunk[this.#filled] = sum / channels.length;
      this.#filled += 1;
      if (this.#filled === this.#chunk.length) {
        this.#hand();
      }
    }
    return !this.#isStopped;
  }

  #hand(): void {
    this.port.postMessage(this.#chunk.slice(0, this.#filled));
    this.#filled = 0;
  }

  #stop(): void {
    if (!this.#isStopped) {
      this.#isStopped = true;
      this.#hand();
      this.port.postMessage('stopped');
    }
  }
}

registerProcessor('mimi-capture', CaptureProcessor);
