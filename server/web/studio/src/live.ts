/** A take while it is made: sound in, codes back, and from them the sound that they stand for. */

import { toInt16, type MimiStream, type Notice } from 'mimi-client';

import { Player, startAudio, type Listen, type PlayerReport } from './audio.ts';
import { Monitor } from './monitor.ts';
import type { Service } from './service.ts';
import type { Source } from './sources.ts';
import { Take } from './take.ts';
import { Refusal, refusalOf } from './words.ts';

/** Sound that may wait in the page to be sent while the line stands. */
const MOST_WAITING_MS = 300_000;

export interface LiveEvents {
  /** Something came or went; there is something to draw. */
  changed: () => void;
  /** Samples went in. */
  input: (samples: Int16Array) => void;
  notice: (notice: Notice) => void;
  /** The sound has ended by itself; answers are still awaited. */
  finishing: () => void;
  /** There is no sound of the codes any more, or not yet; the codes go on. */
  unheard: (refusal: Refusal) => void;
}

export class LiveTake {
  readonly take: Take;
  readonly monitor: Monitor;
  player: Player | null = null;
  /** The stream that encodes. */
  stream: MimiStream | null = null;
  #service: Service;
  #source: Source;
  #events: LiveEvents;
  #listen: Listen;
  #isStopping = false;
  #refusal: Refusal | null = null;
  #stopped: Promise<void> | null = null;

  /** @param levels how many are heard; the take has all that the model has */
  constructor(service: Service, source: Source, take: Take, levels: number, listen: Listen, events: LiveEvents) {
    this.#service = service;
    this.#source = source;
    this.#events = events;
    this.#listen = listen;
    this.take = take;
    this.monitor = new Monitor(
      take,
      levels,
      (wanted) => service.stream({ mode: 'decode', levels: wanted }, {}),
      (frame, pcm) => this.#hear(frame, pcm),
      (cause) => this.#unheard(cause),
    );
  }

  listen(to: Listen): void {
    this.#listen = to;
    this.player?.listen(to);
  }

  /** Go on until the sound ends or {@link stop} is called. Throws why it ended otherwise; what came before is in the take. */
  async run(): Promise<void> {
    const notify = (notice: Notice) => this.#events.notice(notice);
    const stream = await this.#service.stream({ mode: 'encode', levels: this.take.levels }, { notify });
    this.stream = stream;
    try {
      await this.monitor.open().catch((cause: unknown) => this.#unheard(cause));
      const context = await startAudio();
      if (!this.#isStopping) {
        this.player = new Player(context, this.#listen, (report) => this.#tick(report, context.sampleRate));
        this.#source.start(
          context,
          (samples) => this.#send(toInt16(samples)),
          (refusal) => {
            this.#events.finishing();
            this.stop(refusal);
          },
        );
      } else {
        this.stop();
      }
      await this.#read(stream);
      await this.monitor.finish();
      await this.player?.finish();
    } finally {
      await this.#source.stop();
      this.player?.stop();
      void stream.close();
      void this.monitor.finish();
    }
    if (this.#refusal) {
      throw this.#refusal;
    }
  }

  /** End in order: the last samples are sent, the last answers awaited and played. Called again, end at once. */
  stop(refusal: Refusal | null = null): void {
    this.#refusal ??= refusal;
    if (this.#isStopping && this.#stopped) {
      this.player?.stop();
      void this.stream?.close();
      return;
    }
    this.#isStopping = true;
    if (this.stream && this.player) {
      this.#stopped = this.#finish(this.stream);
    } else {
      void this.stream?.close();
    }
  }

  async #finish(stream: MimiStream): Promise<void> {
    await this.#source.stop();
    try {
      await stream.flush();
    } catch {
      // The reader hears of it, too.
    }
    await stream.close();
  }

  async #read(stream: MimiStream): Promise<void> {
    for await (const { codes, latencyMs } of stream) {
      if (codes) {
        this.take.pushCodes(codes, latencyMs);
        this.monitor.push(codes);
        this.#events.changed();
      }
    }
  }

  #send(samples: Int16Array): void {
    const { stream, take } = this;
    if (!stream || take.isFull) {
      this.#isStopping || this.stop(new Refusal('full'));
      return;
    }
    take.input?.push(samples);
    stream.send(samples).catch((cause: unknown) => this.stop(refusalOf(cause)));
    this.#events.input(samples);
    if (stream.stats.unsentMs > MOST_WAITING_MS) {
      this.stop(new Refusal('behind'));
    }
  }

  #hear(frame: number, pcm: Float32Array): void {
    this.take.output.push(toInt16(pcm));
    this.player?.play(this.take.input?.frame(frame) ?? pcm, pcm);
    this.#events.changed();
  }

  #tick(report: PlayerReport, rateHz: number): void {
    this.#source.tick(report.atSamples, rateHz);
  }

  #unheard(cause: unknown): void {
    this.#events.unheard(refusalOf(cause));
  }
}
