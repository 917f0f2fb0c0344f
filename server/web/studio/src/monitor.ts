/** Codes back to sound while they come, at as many levels as are wanted; another number of them is changed to by a cross-fade. */

import type { MimiStream } from 'mimi-client';

import { FRAME_SAMPLES, RATE_HZ, type Take } from './take.ts';

/** Frames before the present one that a new decoder is given first, so that it knows what it goes on from. */
const PRIMING_FRAMES = 40;
const FADE_SAMPLES = Math.round(0.02 * RATE_HZ);

interface Voice {
  stream: MimiStream;
  levels: number;
  /** The frame of the take that the stream's first one is. */
  first: number;
  /** Frames that came and are not handed out. */
  early: Map<number, Float32Array>;
}

export class Monitor {
  /** Whether the levels were changed, so that the sound is not of one stream. */
  isMixed = false;
  #take: Take;
  #connect: (levels: number) => Promise<MimiStream>;
  #deliver: (frame: number, pcm: Float32Array) => void;
  #fail: (cause: unknown) => void;
  #voice: Voice | null = null;
  #next: Voice | null = null;
  #wanted: number;
  #delivered = 0;
  #reading: Promise<void>[] = [];
  #isOver = false;
  #isChanging = false;

  /**
   * @param deliver is given the frames of sound, each once and in order
   * @param fail is told why there is no sound any more
   */
  constructor(
    take: Take,
    levels: number,
    connect: (levels: number) => Promise<MimiStream>,
    deliver: (frame: number, pcm: Float32Array) => void,
    fail: (cause: unknown) => void,
  ) {
    this.#take = take;
    this.#wanted = levels;
    this.#connect = connect;
    this.#deliver = deliver;
    this.#fail = fail;
  }

  /** Of what is handed out at present. */
  get levels(): number {
    return this.#voice?.levels ?? this.#wanted;
  }

  async open(): Promise<void> {
    this.#voice = await this.#made(0);
  }

  /** Take the codes of the newest frame of the take. */
  push(codes: Uint16Array): void {
    for (const voice of [this.#voice, this.#next]) {
      voice?.stream.send(codes.slice(0, voice.levels)).catch(() => {});
    }
  }

  /** Decode so many levels from now on. */
  async change(levels: number): Promise<void> {
    this.#wanted = levels;
    if (!this.#voice || this.#next || this.#isChanging || this.#isOver || this.#voice.levels === levels) {
      return;
    }
    this.#isChanging = true;
    try {
      const next = await this.#made(Math.max(0, this.#take.frames - PRIMING_FRAMES));
      if (this.#isOver) {
        await next.stream.close();
      } else {
        this.isMixed ||= this.#delivered > 0;
        this.#next = next;
      }
    } catch {
      // It sounds as before; the next change tries again.
    } finally {
      this.#isChanging = false;
    }
  }

  /** Have everything answered, and end. */
  async finish(): Promise<void> {
    this.#isOver = true;
    const next = this.#next;
    this.#next = null;
    await next?.stream.close();
    await this.#voice?.stream.flush().catch(() => {});
    await this.#voice?.stream.close();
    await Promise.all(this.#reading);
  }

  async #made(first: number): Promise<Voice> {
    const levels = this.#wanted;
    const stream = await this.#connect(levels);
    const voice = { stream, levels, first: Math.min(first, this.#take.frames), early: new Map() };
    const { data } = this.#take.codes(levels, voice.first);
    stream.send(data).catch(() => {});
    this.#reading.push(this.#read(voice));
    return voice;
  }

  async #read(voice: Voice): Promise<void> {
    try {
      for await (const { position, pcm } of voice.stream) {
        if (pcm) {
          voice.early.set(voice.first + position / FRAME_SAMPLES, pcm);
          this.#hand();
        }
      }
    } catch (cause) {
      if (voice === this.#voice && !this.#isOver) {
        this.#voice = null;
        this.#fail(cause);
      }
    }
  }

  #hand(): void {
    for (let pcm = this.#voice?.early.get(this.#delivered); pcm; pcm = this.#voice?.early.get(this.#delivered)) {
      const [voice, next] = [this.#voice as Voice, this.#next];
      const other = next?.early.get(this.#delivered);
      if (next && other) {
        pcm = crossFaded(pcm, other);
        this.#voice = next;
        this.#next = null;
        void voice.stream.close();
      }
      this.#deliver(this.#delivered, pcm);
      forget(this.#voice as Voice, this.#delivered);
      if (this.#next) {
        forget(this.#next, this.#delivered);
      }
      this.#delivered += 1;
      if (next && other && next.levels !== this.#wanted) {
        void this.change(this.#wanted);
      }
    }
  }
}

function forget(voice: Voice, upTo: number): void {
  for (const frame of voice.early.keys()) {
    if (frame <= upTo) {
      voice.early.delete(frame);
    }
  }
}

function crossFaded(from: Float32Array, to: Float32Array): Float32Array {
  return to.map((value, at) => {
    const share = Math.min(1, at / FADE_SAMPLES);
    return share * value + (1 - share) * (from[at] as number);
  });
}
