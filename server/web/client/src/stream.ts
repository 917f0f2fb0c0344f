/** A stream to a service: goes on where it was when the line is lost, and bounds what waits in either direction. */

import { Conversation, type Notice } from './conversation.ts';
import { refuse } from './errors.ts';
import type { Flushed, Frame, Ready } from './messages.ts';
import { payloadBytes, type Payload } from './payload.ts';
import { StreamProtocol } from './protocol.ts';
import { asked, CODEC_FRAMES_PER_S, lineOptions, unitsPerS, type LineOptions, type StreamSettings } from './settings.ts';

export type { Notice };

export interface StreamOptions extends Partial<LineOptions> {
  /** Whether input goes out in real time, as from a microphone, instead of as fast as the service takes it. */
  paced?: boolean;
  /** Called with what no call reports. */
  notify?: (notice: Notice) => void;
}

/** Where a stream stands. Frames are counted since the start or the last reset. */
export interface StreamStats {
  sentFrames: number;
  answeredFrames: number;
  /** Whole frames that were sent and are not answered, in time. */
  lagMs: number;
  /** Input that waits to be sent, in time. */
  unsentMs: number;
  /** Answers that wait to be read. */
  waitingFrames: number;
  /** Of the last two thousand frames, from sending a frame's last input to its answer. */
  latencyMs: { p50: number | null; p95: number | null; p99: number | null; max: number | null };
  resumes: number;
  repeatedFrames: number;
}

/** One stream. Get one by {@link MimiStream.connect}. */
export class MimiStream implements AsyncIterable<Frame> {
  #options: LineOptions;
  #protocol: StreamProtocol;
  #line: Conversation;

  private constructor(
    url: string | URL,
    settings: StreamSettings,
    { paced = false, notify = () => {}, ...options }: StreamOptions,
  ) {
    this.#options = lineOptions(options);
    this.#protocol = new StreamProtocol(asked(settings), this.#options);
    this.#line = new Conversation(url, this.#protocol, this.#options, paced, notify);
  }

  /**
   * Connect and agree the settings.
   *
   * Throws `unavailable`: there is no service, or it does not answer; `setting`, `capacity`, `unauthorized`, ...: its refusal.
   *
   * @param url `ws://HOST:PORT`, `wss://`, `http://` or `https://`, with or without the path
   */
  static async connect(url: string | URL, settings: StreamSettings = {}, options: StreamOptions = {}): Promise<MimiStream> {
    const stream = new MimiStream(url, settings, options);
    await stream.#line.open();
    return stream;
  }

  /** What the service said when the settings were agreed, or when the stream was last resumed. */
  get ready(): Ready {
    return this.#protocol.ready;
  }

  get stats(): StreamStats {
    const { meter, outbox, asked: settings } = this.#protocol;
    const latency = (percent: number) => meter.percentileMs(percent);
    return {
      sentFrames: meter.sentFrames,
      answeredFrames: meter.answeredFrames,
      lagMs: (1000 * Math.floor(meter.inFlightFrames)) / CODEC_FRAMES_PER_S,
      unsentMs: (1000 * outbox.unsentBytes) / outbox.unitBytes / unitsPerS(settings),
      waitingFrames: this.#line.waitingFrames,
      latencyMs: { p50: latency(50), p95: latency(95), p99: latency(99), max: latency(100) },
      resumes: this.#protocol.resumes,
      repeatedFrames: this.#protocol.repeatedFrames,
    };
  }

  /**
   * Send input of any length; see {@link Payload}. Settles as soon as the input has room in the buffer of what is unsent, a lost line
   * or not.
   */
  async send(data: Payload): Promise<void> {
    this.#line.requireOpen();
    const { levels, codebookEntries } = this.ready;
    const { outbox } = this.#protocol;
    const payload = payloadBytes(data, this.#protocol.asked, levels, codebookEntries);
    for (let start = 0; start < payload.length; start += this.#line.messageBytes) {
      while (outbox.unsentBytes >= this.#options.maxUnsentBytes) {
        this.#line.requireOpen();
        await this.#line.room.wait();
      }
      this.#line.requireOpen();
      outbox.append(payload.subarray(start, start + this.#line.messageBytes));
      this.#line.pump();
    }
  }

  /**
   * Have the tail padded to a whole frame and everything answered; the stream may go on afterwards. The answers come through
   * {@link receive}: somebody must read them while this waits.
   */
  async flush(): Promise<Flushed> {
    return this.#line.flush();
  }

  /** Start over as a new stream: state, sequence and position. Answers owed come first, and somebody must read them. */
  async reset(): Promise<void> {
    return this.#line.reset();
  }

  /** Wait for the next frame; `null` once the stream is closed. Throws why it has ended otherwise. */
  async receive(): Promise<Frame | null> {
    for (;;) {
      const item = await this.#line.next();
      if (item?.type !== 'flushed') {
        return item;
      }
    }
  }

  /** Iterate over frames until the stream is closed. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Frame, void> {
    for (let frame = await this.receive(); frame; frame = await this.receive()) {
      yield frame;
    }
  }

  /**
   * Send everything that a source yields, flush, and iterate over the frames meanwhile; returns the counts of the flush. The stream is
   * as open afterwards as before. What the source throws ends the stream, and is thrown here.
   */
  async *run(source: Iterable<Payload> | AsyncIterable<Payload>): AsyncGenerator<Frame, Flushed> {
    const feeding = this.#feed(source);
    feeding.catch(() => {});
    for (;;) {
      const item = await this.#line.next();
      if (item === null) {
        await feeding;
        throw refuse('session_closed', 'stream', 'closed before this was answered', 'an open stream');
      }
      if (item.type === 'flushed') {
        return item;
      }
      yield item;
    }
  }

  /** Close the stream: what was sent is still dealt with, answers that nobody read are dropped. Harmless when repeated. */
  close(): Promise<void> {
    return this.#line.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #feed(source: Iterable<Payload> | AsyncIterable<Payload>): Promise<void> {
    try {
      for await (const data of source) {
        await this.send(data);
      }
      await this.flush();
    } catch (cause) {
      this.#line.fail(cause);
      throw cause;
    }
  }
}
