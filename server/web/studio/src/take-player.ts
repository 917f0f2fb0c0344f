/** Plays a take that is done: input and output side by side, in step, so that one changes to the other within a breath. */

import { startAudio, type Listen } from './audio.ts';
import { RATE_HZ, type Sound } from './take.ts';

const FADE_S = 0.02;
const AHEAD_S = 0.05;

interface Voice {
  node: AudioBufferSourceNode;
  gain: GainNode;
}

export class TakePlayer {
  #context: AudioContext | null = null;
  #input: Voice | null = null;
  #output: Voice | null = null;
  #listen: Listen = 'codec';
  #lengthS = 0;
  /** Time of the context at which the take's beginning would have been. */
  #zeroS = 0;
  #ended: () => void;

  /** @param ended is called when the end is reached */
  constructor(ended: () => void) {
    this.#ended = ended;
  }

  get isPlaying(): boolean {
    return this.#context !== null;
  }

  /** Where it is, in seconds. */
  get atS(): number {
    const nowS = (this.#context?.currentTime ?? 0) - this.#zeroS;
    return Math.max(0, Math.min(this.#lengthS, nowS));
  }

  async play(input: Sound | null, output: Sound | null, fromS: number, listen: Listen): Promise<void> {
    this.stop();
    const context = await startAudio();
    this.#context = context;
    this.#listen = listen;
    this.#lengthS = Math.max(input?.length ?? 0, output?.length ?? 0) / RATE_HZ;
    const beginS = context.currentTime + AHEAD_S;
    this.#zeroS = beginS - fromS;
    this.#input = this.#voice(input, beginS);
    this.#output = this.#voice(output, beginS);
    this.listen(listen);
  }

  listen(to: Listen): void {
    this.#listen = to;
    this.#fade(this.#input, to === 'input' ? 1 : 0);
    this.#fade(this.#output, to === 'codec' ? 1 : 0);
  }

  /** Go on with another output, from the same place. */
  replace(output: Sound): void {
    const context = this.#context;
    if (!context) {
      return;
    }
    const old = this.#output;
    this.#fade(old, 0);
    setTimeout(() => old?.node.stop(), 1000 * (AHEAD_S + FADE_S));
    this.#output = this.#voice(output, context.currentTime + FADE_S);
    this.listen(this.#listen);
  }

  stop(): void {
    for (const voice of [this.#input, this.#output]) {
      if (voice) {
        voice.node.onended = null;
        this.#fade(voice, 0);
        voice.node.stop((this.#context?.currentTime ?? 0) + FADE_S);
      }
    }
    this.#context = this.#input = this.#output = null;
  }

  #voice(sound: Sound | null, beginS: number): Voice | null {
    const context = this.#context;
    if (!context || !sound || sound.length === 0) {
      return null;
    }
    const buffer = context.createBuffer(1, sound.length, RATE_HZ);
    buffer.copyToChannel(
      Float32Array.from(sound.view(), (value) => value / 32768),
      0,
    );
    const [node, gain] = [context.createBufferSource(), context.createGain()];
    node.buffer = buffer;
    gain.gain.value = 0;
    node.connect(gain).connect(context.destination);
    node.start(beginS, Math.max(0, beginS - this.#zeroS));
    node.onended = () => this.#voiceEnded(node);
    return { node, gain };
  }

  #voiceEnded(node: AudioBufferSourceNode): void {
    if (
      this.#context &&
      (node === this.#output?.node || (node === this.#input?.node && !this.#output)) &&
      this.atS >= this.#lengthS - 0.1
    ) {
      this.stop();
      this.#ended();
    }
  }

  #fade(voice: Voice | null, to: number): void {
    voice?.gain.gain.setTargetAtTime(to, this.#context?.currentTime ?? 0, FADE_S / 4);
  }
}
