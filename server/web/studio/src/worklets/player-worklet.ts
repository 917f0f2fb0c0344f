/**
 * Plays what was sent and what came back for it, in step, through a jitter buffer; which of them is heard changes by a cross-fade.
 *
 * To it: `{input, output}`, two `Float32Array`s of one length at the rate of the context; `{listen}`, `'input'`, `'codec'` or `'off'`;
 * `'end'` when no samples follow. From it: a `PlayerReport` some forty times a second, and `'drained'` once everything is played.
 */
import { JitterBuffer, type JitterReport } from '../../../client/src/jitter-buffer.ts';

export type Listen = 'input' | 'codec' | 'off';
export type PlayerMessage = { input: Float32Array; output: Float32Array } | { listen: Listen } | 'end';
/** `atSamples` is the time of the context. */
export type PlayerReport = JitterReport & { atSamples: number };

const FADE_S = 0.01;
const REPORT_SAMPLES = 1_024;
const MOST_BLOCK_SAMPLES = 4_096;

class PlayerProcessor extends AudioWorkletProcessor {
  #buffer: JitterBuffer;
  #pulled = [new Float32Array(MOST_BLOCK_SAMPLES), new Float32Array(MOST_BLOCK_SAMPLES)] as const;
  #gains = [0, 0] as [number, number];
  #wanted: readonly [number, number] = [0, 0];
  #isEnded = false;
  #sinceReport = 0;

  constructor({ processorOptions: { listen, targetMs } }: { processorOptions: { listen: Listen; targetMs: number } }) {
    super();
    this.#buffer = new JitterBuffer({ sampleRateHz: sampleRate, channels: 2, targetMs });
    this.#listen(listen);
    this.#gains = [...this.#wanted];
    this.port.onmessage = (event) => this.#take(event.data);
  }

  process(_inputs: Float32Array[][], outputs: Float32Array[][]): boolean {
    const output = outputs[0]?.[0];
    const count = output?.length ?? 0;
    const [input, codec] = [this.#pulled[0].subarray(0, count), this.#pulled[1].subarray(0, count)];
    this.#buffer.pull([input, codec]);
    const step = 1 / (FADE_S * sampleRate);
    for (let at = 0; output && at < count; at += 1) {
      this.#gains = [towards(this.#gains[0], this.#wanted[0], step), towards(this.#gains[1], this.#wanted[1], step)];
      output[at] = this.#gains[0] * (input[at] as number) + this.#gains[1] * (codec[at] as number);
    }
    this.#sinceReport += count;
    const isDone = this.#isEnded && this.#buffer.isDrained;
    if (isDone || this.#sinceReport >= REPORT_SAMPLES) {
      this.#sinceReport = 0;
      this.port.postMessage({ ...this.#buffer.report, atSamples: currentFrame + count });
    }
    if (isDone) {
      this.port.postMessage('drained');
    }
    return !isDone;
  }

  #take(message: PlayerMessage): void {
    if (message === 'end') {
      this.#isEnded = true;
      this.#buffer.end();
    } else if ('listen' in message) {
      this.#listen(message.listen);
    } else {
      this.#buffer.push([message.input, message.output]);
    }
  }

  #listen(to: Listen): void {
    this.#wanted = [to === 'input' ? 1 : 0, to === 'codec' ? 1 : 0];
  }
}

function towards(from: number, to: number, step: number): number {
  return from < to ? Math.min(to, from + step) : Math.max(to, from - step);
}

registerProcessor('mimi-player', PlayerProcessor);
