/**
 * The line's side of a stream: sends what the outbox holds, as far as there is credit, hands out what comes, makes lost connections
 * again.
 */

import { MimiError, refuse } from './errors.ts';
import { Line, openWithin, type LineEnd } from './line.ts';
import type { Flushed, Frame, ServerEvent } from './messages.ts';
import type { StreamProtocol } from './protocol.ts';
import { CODEC_FRAMES_PER_S, unitsPerS, type LineOptions } from './settings.ts';
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

/** Everything between a stream's buffers and its service. */
export class Conversation {
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
  #over = new Waiting();
  #flushes: Deferred<Flushed>[] = [];
  #resets: Deferred<void>[] = [];
  #wake: ReturnType<typeof setTimeout> | null = null;
  #ticker: ReturnType<typeof setInterval> | null = null;
  #tickedAtMs = 0;
  #pingedAtMs: number | null = null;
  /** Where to wait until the outbox may have room, or the stream is over. */
  readonly room = new Waiting();

  /**
   * @param protocol the stream; its outbox is filled by others, who then call {@link pump}
   * @param paced whether input goes out in real time
   */
  constructor(
    url: string | URL,
    protocol: StreamProtocol,
    options: LineOptions,
    paced: boolean,
    notify: (notice: Notice) => void,
  ) {
    this.#url = url;
    this.#protocol = protocol;
    this.#options = options;
    this.#pacer = paced ? new Pacer(unitsPerS(protocol.asked)) : null;
    this.#notify = notify;
  }

  /** Connect, and go on until the stream is closed, refused or cannot be had again. Throws the service's refusal, or that there is none. */
  async open(): Promise<void> {
    void this.#supervise(await this.#open(this.#options.waitForPlaceMs, null));
  }

  /** Answers that wait to be read. */
  get waitingFrames(): number {
    return this.#received.length;
  }

  /** Send a flush and wait for its answer. */
  flush(): Promise<Flushed> {
    return this.#control('flush', this.#flushes);
  }

  /** Send a reset and wait for its answer. */
  reset(): Promise<void> {
    return this.#control('reset', this.#resets);
  }

  /** End the stream for a reason of whoever uses it, unless it has ended already. */
  fail(cause: unknown): void {
    if (!this.#failure && !this.#isClosing) {
      this.#failure = cause instanceof MimiError ? cause : refuse('input', 'source', String(cause), 'input to send');
      this.#line?.fail(this.#failure, false);
      this.#finish();
    }
  }

  /** The next answer; `null` once the stream is closed. Throws why it has ended otherwise. */
  async next(): Promise<Frame | Flushed | null> {
    for (;;) {
      const item = this.#received.shift();
      if (item) {
        this.pump();
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
    this.requireOpen();
    const answer = deferred<T>();
    waiting.push(answer);
    this.#protocol.outbox.appendControl(kind);
    this.pump();
    return answer.promise;
  }

  /** Close the stream: what was sent is still dealt with, answers that nobody read are dropped. Harmless when repeated. */
  async close(): Promise<void> {
    if (!this.#isClosing && !this.#isOver) {
      this.#protocol.outbox.appendControl('close');
    }
    this.#isClosing = true;
    this.#received = [];
    this.pump();
    const timer = setTimeout(() => this.#line?.abandon('closing took too long'), this.#options.closeTimeoutMs);
    const giveUp = setTimeout(() => this.#finish(), this.#options.closeTimeoutMs);
    while (!this.#isOver) {
      await this.#over.wait();
    }
    clearTimeout(timer);
    clearTimeout(giveUp);
  }

  requireOpen(): void {
    if (this.#failure) {
      throw this.#failure;
    }
    if (this.#isClosing || this.#isOver) {
      throw refuse('session_closed', 'stream', 'closed', 'an open stream');
    }
  }

  /** Most bytes of one message of input: whole samples or frames, a frame at a time where input is paced. */
  get messageBytes(): number {
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
        this.pump();
        const end = await line.ended;
        this.#line = null;
        if (this.#isOver || (this.#isClosing && (end.isDone || end.isLost))) {
          return;
        }
        if (!end.isLost || this.#protocol.token === null) {
          throw end.error;
        }
        this.#notify({ kind: 'lost', text: end.error.message });
        line = await this.#open(this.#options.giveUpMs ?? this.#protocol.ready.resumeGraceMs, end);
        this.#notify({
          kind: 'resumed',
          text: this.#protocol.ready.resampler ? `resampler ${this.#protocol.ready.resampler}` : '',
        });
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
    this.pump();
  }

  #keep(item: Frame | Flushed): void {
    if (!this.#isClosing) {
      this.#received.push(item);
      this.#reader.notify();
    }
  }

  /** Send what may be sent now. */
  pump(): void {
    const line = this.#line;
    if (!line?.isOpen) {
      return;
    }
    if (this.#protocol.ackIsDue) {
      line.send(this.#protocol.ack());
    }
    const { outbox } = this.#protocol;
    for (let entry = outbox.peek(this.messageBytes); entry; entry = outbox.peek(this.messageBytes)) {
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
      this.room.notify();
    }
  }

  /** A WebSocket cannot be told to stop reading: what is not read is bounded by what is asked for. */
  get #hasCredit(): boolean {
    const { inFlightFrames } = this.#protocol.meter;
    return (
      inFlightFrames <= this.#protocol.ready.creditFrames &&
      inFlightFrames + this.#received.length < this.#options.maxReceivedFrames
    );
  }

  #pumpAfter(waitMs: number): void {
    this.#wake ??= setTimeout(() => {
      this.#wake = null;
      this.pump();
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
    this.room.notify();
    this.#over.notify();
  }
}
