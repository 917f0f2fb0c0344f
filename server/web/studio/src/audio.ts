/** The audio device: one context at its own rate, the worklets in it, and the player. */

import { Resampler } from 'mimi-client';

import { RATE_HZ } from './take.ts';
import { Refusal } from './words.ts';
import type { Listen, PlayerReport } from './worklets/player-worklet.ts';

export type { Listen, PlayerReport };

const START_TIMEOUT_MS = 5_000;
/** After the last sample has left the player, the loudspeaker still has some. */
const LOUDSPEAKER_S = 0.1;
const MOST_WAIT_S = 10;
const LEAST_TARGET_MS = 160;

let shared: AudioContext | null = null;
/** The delay that the last take found to be needed; the next one begins with it. */
let targetMs = LEAST_TARGET_MS;

/** Refuse where the browser has no audio worklets or no microphone to offer at all. */
export function checkBrowser(): void {
  if (!globalThis.isSecureContext) {
    throw new Refusal('insecure', `This page came from ${location.origin}.`);
  }
  if (!globalThis.AudioWorkletNode || !globalThis.WebSocket) {
    throw new Refusal('old_browser');
  }
}

/** The context, running, with the worklets loaded. Its rate is the hardware's: some browsers take no microphone at another. */
export async function startAudio(): Promise<AudioContext> {
  checkBrowser();
  if (!shared) {
    const context = new AudioContext({ latencyHint: 'interactive' });
    try {
      for (const name of ['capture', 'player']) {
        await context.audioWorklet.addModule(new URL(`web/${name}-worklet.js`, document.baseURI));
      }
    } catch (cause) {
      void context.close();
      throw new Refusal('unavailable', `Code for the audio thread: ${cause}`);
    }
    shared = context;
  }
  // Without a sound device a context may never start.
  const late = new Promise((resolve) => setTimeout(resolve, START_TIMEOUT_MS, 'late'));
  if ((await Promise.race([shared.resume(), late])) === 'late') {
    throw new Refusal('no_output');
  }
  return shared;
}

/** Let the device rest. */
export function restAudio(): void {
  void shared?.suspend();
}

/** Plays frames of 24 kHz as they come, input and output in step, in the audio thread. */
export class Player {
  readonly node: AudioWorkletNode;
  report: PlayerReport;
  #context: AudioContext;
  #input: Resampler;
  #output: Resampler;
  #drained: () => void = () => {};

  /** @param tick is called with every report: a clock that does not slow down when the page is hidden */
  constructor(context: AudioContext, listen: Listen, tick: (report: PlayerReport) => void) {
    this.#context = context;
    this.#input = new Resampler(RATE_HZ, context.sampleRate);
    this.#output = new Resampler(RATE_HZ, context.sampleRate);
    this.report = { playedSamples: 0, waitingSamples: 0, targetSamples: 0, underruns: 0, skippedSamples: 0, atSamples: 0 };
    this.node = new AudioWorkletNode(context, 'mimi-player', {
      numberOfInputs: 0,
      outputChannelCount: [1],
      processorOptions: { listen, targetMs },
    });
    this.node.port.onmessage = ({ data }) => {
      if (data === 'drained') {
        this.#drained();
      } else {
        this.report = data;
        targetMs = Math.max(LEAST_TARGET_MS, (1000 * this.report.targetSamples) / context.sampleRate);
        tick(data);
      }
    };
    this.node.connect(context.destination);
  }

  listen(to: Listen): void {
    this.node.port.postMessage({ listen: to });
  }

  play(input: Float32Array, output: Float32Array): void {
    this.#give(this.#input.push(input), this.#output.push(output));
  }

  /** Play what is there, then no more; settles when it has been heard. */
  async finish(): Promise<void> {
    this.#give(this.#input.flush(), this.#output.flush());
    this.node.port.postMessage('end');
    if (this.#context.state === 'running') {
      await new Promise<void>((resolve) => {
        this.#drained = () => setTimeout(resolve, 1000 * LOUDSPEAKER_S);
        setTimeout(resolve, 1000 * MOST_WAIT_S);
      });
    }
    this.node.disconnect();
  }

  /** Silence, at once. */
  stop(): void {
    this.node.port.postMessage('end');
    this.node.disconnect();
  }

  #give(input: Float32Array, output: Float32Array): void {
    this.node.port.postMessage({ input, output });
  }
}
