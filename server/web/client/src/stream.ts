/** A stream to a service: goes on where it was when the line is lost, and bounds what waits in either direction. */

import { MimiError, refuse } from './errors.ts';
import { Line, openWithin, type LineEnd } from './line.ts';
import type { Flushed, Frame, Ready, ServerEvent } from './messages.ts';
import { payloadBytes, type Payload } from './payload.ts';
import { StreamProtocol } from './protocol.ts';
import { asked, CODEC_FRAMES_PER_S, lineOptions, unitsPerS, type LineOptions, type StreamSettings } from './settings.ts';
import { Pacer } from './timing.ts';
import { deferred, Waiting, type Deferred } from './waiting.ts';

/** Frames in one message where nothing holds input back. */
const UNPACED_FRAMES = 8;
/** Bytes that a socket may hold before no more is given to it. */
const MOST_BUFFERED_BYTES = 1 << 16;
const BUFFERED_POLL_MS = 10;
const TICK_MS = 1_000;

/** Something that happened on the line and that no call reports. */
export interface Notice {
  kind: 'warning' | 'goaway' | 'lost' | 'resumed';
  text: string;
}

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
  #url: string | URL;
  #options: LineOptions;
  #protocol: StreamProtocol;
  #pacer: Pacer | null;
  #notify: (notice: Notice) => void;
  #line: Line | null = null;
  #failure: MimiError | null = null;
  #isClosing = false;
  #isOver = false;
  #received: (Frame | Flushed)[] = [];
  #reader = new Waiting();
  #room = new Waiting();
  #over = new Waiting();
  #flushes: Deferred<Flushed>[] = [];
  #resets: Deferred<void>[] = [];
  #wake: ReturnType<typeof setTimeout> | null = null;
  #ticker: ReturnType<typeof setInterval> | null = null;
  #tickedAtMs = 0;
  #pingedAtMs: number | null = null;

  private constructor(
    url: string | URL,
    settings: StreamSettings,
    { paced = false, notify = () => {}, ...options }: StreamOptions,
  ) {
    this.#url = url;
    this.#options = lineOptions(options);
    this.#protocol = new StreamProtocol(asked(settings), this.#options);
    this.#pacer = paced ? new Pacer(unitsPerS(this.#protocol.asked)) : null;
    this.#notify = notify;
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
    const line = await stream.#open(stream.#options.waitForPlaceMs, null);
    void stream.#supervise(line);
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
      waitingFrames: this.#received.length,
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
    this.#requireOpen();
    const { levels, codebookEntries } = this.ready;
    const { outbox } = this.#protocol;
    const payload = payloadBytes(data, this.#protocol.asked, levels, codebookEntries);
    for (let start = 0; start < payload.length; start += this.#messageBytes) {
      while (outbox.unsentBytes >= this.#options.maxUnsentBytes) {
        this.#requireOpen();
        await this.#room.wait();
      }
      this.#requireOpen();
      outbox.append(payload.subarray(start, start + this.#messageBytes));
      this.#pump();
    }
  }

  /**
   * Have the tail padded to a whole frame and everything answered; the stream may go on afterwards. The answers come through
   * {@link receive}: somebody must read them while this waits.
   */
  async flush(): Promise<Flushed> {
    return this.#control('flush', this.#flushes);
  }

  /** Start over as a new stream: state, sequence and position. Answers owed come first, and somebody must read them. */
  async reset(): Promise<void> {
    return this.#control('reset', this.#resets);
  }

  /** Wait for the next frame; `null` once the stream is closed. Throws why it has ended otherwise. */
  async receive(): Promise<Frame | null> {
    for (;;) {
      const item = await this.#next();
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
      const item = await this.#next();
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
  async close(): Promise<void> {
    if (!this.#isClosing && !this.#isOver) {
      this.#protocol.outbox.appendControl('close');
    }
    this.#isClosing = true;
    this.#received = [];
    this.#pump();
    const timer = setTimeout(() => this.#line?.abandon('closing took too long'), this.#options.closeTimeoutMs);
    const giveUp = setTimeout(() => this.#finish(), this.#options.closeTimeoutMs);
    while (!this.#isOver) {
      await this.#over.wait();
    }
    clearTimeout(timer);
    clearTimeout(giveUp);
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
      if (!this.#failure && !this.#isClosing) {
        this.#failure = cause instanceof MimiError ? cause : refuse('input', 'source', String(cause), 'input to send');
        this.#line?.fail(this.#failure, false);
        this.#finish();
      }
      throw cause;
    }
  }

  async #next(): Promise<Frame | Flushed | null> {
    for (;;) {
      const item = this.#received.shift();
      if (item) {
        this.#pump();
        return item;
      }
      if (this.#failure) {
        throw this.#failure;
      }
      if (this.#isOver || this.#isClosing) {
        return null;
      }
      await this.#reader.wait();
    }
  }

  async #control<T>(kind: 'flush' | 'reset', waiting: Deferred<T>[]): Promise<T> {
    this.#requireOpen();
    const answer = deferred<T>();
    waiting.push(answer);
    this.#protocol.outbox.appendControl(kind);
    this.#pump();
    return answer.promise;
  }

  #requireOpen(): void {
    if (this.#failure) {
      throw this.#failure;
    }
    if (this.#isClosing || this.#isOver) {
      throw refuse('session_closed', 'stream', 'closed', 'an open stream');
    }
  }

  /** Most bytes of one message of input: whole samples or frames, a frame at a time where input is paced. */
  get #messageBytes(): number {
    const { outbox, asked: settings, ready } = this.#protocol;
    const frames = this.#pacer ? 1 : UNPACED_FRAMES;
    const units = Math.max(1, Math.floor((frames * unitsPerS(settings)) / CODEC_FRAMES_PER_S));
    const most = ready.maxMessageBytes - (ready.maxMessageBytes % outbox.unitBytes);
    return Math.max(outbox.unitBytes, Math.min(units * outbox.unitBytes, most));
  }

  #open(limitMs: number, cause: LineEnd | null): Promise<Line> {
    const isWanted = () => !this.#isOver && !this.#isClosing;
    return openWithin(limitMs, this.#url, this.#protocol, this.#options, (event) => this.#handle(event), cause, isWanted);
  }

  async #supervise(first: Line): Promise<void> {
    this.#ticker = setInterval(() => this.#tick(), TICK_MS);
    this.#tickedAtMs = performance.now();
    try {
      for (let line = first; ;) {
        this.#line = line;
        this.#pingedAtMs = null;
        this.#pump();
        const end = await line.ended;
        this.#line = null;
        if (this.#isOver || (this.#isClosing && (end.isDone || end.isLost))) {
          return;
        }
        if (!end.isLost || this.#protocol.token === null) {
          throw end.error;
        }
        this.#notify({ kind: 'lost', text: end.error.message });
        line = await this.#open(this.#options.giveUpMs ?? this.ready.resumeGraceMs, end);
        this.#notify({ kind: 'resumed', text: this.ready.resampler ? `resampler ${this.ready.resampler}` : '' });
      }
    } catch (cause) {
      this.#failure ??= cause instanceof MimiError ? cause : refuse('internal', 'stream', String(cause));
    } finally {
      this.#finish();
    }
  }

  #handle(event: ServerEvent): void {
    switch (event.type) {
      case 'frame':
        this.#keep(event);
        break;
      case 'flushed':
        this.#keep(event);
        this.#flushes.shift()?.resolve(event);
        break;
      case 'reset_done':
        this.#resets.shift()?.resolve();
        break;
      case 'warning':
        this.#notify({ kind: 'warning', text: `${event.code}: ${event.message}` });
        break;
      case 'goaway':
        this.#notify({ kind: 'goaway', text: `the service goes down in ${event.timeLeftMs} ms` });
        break;
    }
    this.#pump();
  }

  #keep(item: Frame | Flushed): void {
    if (!this.#isClosing) {
      this.#received.push(item);
      this.#reader.notify();
    }
  }

  /** Send what may be sent now. */
  #pump(): void {
    const line = this.#line;
    if (!line?.isOpen) {
      return;
    }
    if (this.#protocol.ackIsDue) {
      line.send(this.#protocol.ack());
    }
    const { outbox } = this.#protocol;
    for (let entry = outbox.peek(this.#messageBytes); entry; entry = outbox.peek(this.#messageBytes)) {
      if (line.bufferedBytes > MOST_BUFFERED_BYTES) {
        this.#pumpAfter(BUFFERED_POLL_MS);
        return;
      }
      if (entry.kind === 'chunk') {
        const waitMs =
          this.#pacer?.delayMs(entry.epoch, (entry.byte + entry.data.length) / outbox.unitBytes, performance.now()) ?? 0;
        if (waitMs > 0) {
          this.#pumpAfter(waitMs);
          return;
        }
        if (!this.#hasCredit) {
          return;
        }
      }
      line.send(this.#protocol.encoded(entry));
      this.#protocol.sent(entry, performance.now());
      this.#room.notify();
    }
  }

  /** A WebSocket cannot be told to stop reading: what is not read is bounded by what is asked for. */
  get #hasCredit(): boolean {
    const { inFlightFrames } = this.#protocol.meter;
    return (
      inFlightFrames <= this.ready.creditFrames && inFlightFrames + this.#received.length < this.#options.maxReceivedFrames
    );
  }

  #pumpAfter(waitMs: number): void {
    this.#wake ??= setTimeout(() => {
      this.#wake = null;
      this.#pump();
    }, waitMs);
  }

  /** Ask a silent service whether it is there. A clock that stood still, as in a laptop that slept, is no silence. */
  #tick(): void {
    const nowMs = performance.now();
    const stoodStill = nowMs - this.#tickedAtMs > 5 * TICK_MS;
    this.#tickedAtMs = nowMs;
    const line = this.#line;
    if (!line?.isOpen) {
      return;
    }
    if (this.#pingedAtMs === null || line.heardAtMs > this.#pingedAtMs || stoodStill) {
      this.#pingedAtMs = null;
      if (nowMs - line.heardAtMs > this.#options.pingIntervalMs) {
        line.send('{"type":"ping"}');
        this.#pingedAtMs = nowMs;
      }
    } else if (nowMs - this.#pingedAtMs > this.#options.pingTimeoutMs) {
      line.abandon(`nothing heard for ${this.#options.pingTimeoutMs} ms after a ping`);
    }
  }

  /** Let everybody who waits know. */
  #finish(): void {
    this.#isOver = true;
    clearInterval(this.#ticker ?? undefined);
    clearTimeout(this.#wake ?? undefined);
    const error = this.#failure ?? refuse('session_closed', 'stream', 'closed before this was answered', 'an open stream');
    for (const { promise, reject } of [...this.#flushes.splice(0), ...this.#resets.splice(0)]) {
      promise.catch(() => {});
      reject(error);
    }
    this.#reader.notify();
    this.#room.notify();
    this.#over.notify();
  }
}
