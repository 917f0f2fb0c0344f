/**
 * The client's end of one stream, over any number of connections. No sockets here: messages in, events and messages out.
 *
 * On each connection the first message out is {@link StreamProtocol.opening}, `hello` or later `resume`. The service then says how
 * much input it holds, and the outbox goes back to there. Answers that come twice are dropped here: whoever reads the events sees
 * each frame once and in order.
 */

import { refuse, type MimiError } from './errors.ts';
import { parseBinary, parseText, type Flushed, type Frame, type Ready, type ServerEvent } from './messages.ts';
import { Outbox, type Entry } from './outbox.ts';
import { CODEC_FRAMES_PER_S, unitBytes, unitsPerS, type Asked } from './settings.ts';
import { LatencyMeter } from './timing.ts';

/** Answers between two acknowledgements. */
const ACK_FRAMES = 8;
/** Refusals of a service that cannot give a stream back. */
const GONE: ReadonlySet<string> = new Set(['resume_refused', 'resume_lost', 'snapshot']);

export class StreamProtocol {
  readonly asked: Asked;
  token: string | null = null;
  epoch = 0;
  resumes = 0;
  /** Answers that came again and were dropped. */
  repeatedFrames = 0;
  #resume: boolean;
  #maxHeldBytes: number;
  #ready: Ready | null = null;
  #outbox: Outbox | null = null;
  #meter: LatencyMeter | null = null;
  #lastSequence = -1;
  #ackedSequence = -1;
  #flushesAnswered = 0;

  /**
   * @param resume whether input is kept for connections to come
   * @param maxHeldBytes most input kept
   */
  constructor(asked: Asked, { resume, maxHeldBytes }: { resume: boolean; maxHeldBytes: number }) {
    this.asked = asked;
    this.#resume = resume;
    this.#maxHeldBytes = maxHeldBytes;
  }

  /** What the service said last; throws `unavailable` before it said anything. */
  get ready(): Ready {
    return present(this.#ready);
  }

  /** The input; there is one once the service is ready. */
  get outbox(): Outbox {
    return present(this.#outbox);
  }

  /** Latency and frames in flight; there is one once the service is ready. */
  get meter(): LatencyMeter {
    return present(this.#meter);
  }

  /** The first message of a connection. */
  opening(): string {
    return JSON.stringify(
      this.token === null
        ? { type: 'hello', ...this.asked.hello }
        : { type: 'resume', token: this.token, last_sequence: this.#lastSequence, epoch: this.epoch },
    );
  }

  /**
   * Make up for a stream that the service no longer has, where all its input is still here: the same input makes the same answers,
   * so the next {@link opening} asks for a new stream, which is sent everything, and whose first answers are known.
   */
  beginAgain(error: MimiError): boolean {
    if (!GONE.has(error.code) || this.token === null || this.epoch > 0 || !this.outbox.isWhole) {
      return false;
    }
    this.token = null;
    return true;
  }

  /**
   * Take one message; `null` for what is settled here, or came before.
   *
   * Throws `unavailable`: it is not of `mimi.v1`, or asks for input that is not kept; `internal`: it breaks a promise of the protocol.
   */
  receive(message: string | ArrayBuffer, nowMs: number): ServerEvent | null {
    if (typeof message !== 'string') {
      return this.#frame(parseBinary(message, this.asked.sampleFormat), nowMs);
    }
    const event = parseText(message);
    switch (event?.type) {
      case 'ready':
        this.#agree(event);
        return event;
      case 'checkpoint':
        this.outbox.release(event.epoch, event.position);
        return event;
      case 'goaway':
        this.token = (this.#resume && event.resumeToken) || this.token;
        return event;
      case 'flushed':
        return this.#isNewFlush(event) ? event : null;
      case 'reset_done':
        return this.#isNewReset(event.epoch) ? event : null;
      default:
        return event;
    }
  }

  /** The message of an entry of the outbox. */
  encoded(entry: Entry): string | Uint8Array<ArrayBuffer> {
    return entry.kind === 'chunk' ? entry.data : JSON.stringify({ type: entry.kind });
  }

  /** Count an entry as sent; to be called right after the outbox's entry went out. */
  sent(entry: Entry, nowMs: number): void {
    if (entry.kind === 'flush') {
      this.meter.flushSent(nowMs);
    } else if (entry.kind === 'chunk' && entry.epoch === this.epoch) {
      this.meter.sent(entry.data.length / this.outbox.unitBytes, nowMs);
    }
    this.outbox.advance();
  }

  get ackIsDue(): boolean {
    return this.token !== null && this.#lastSequence - this.#ackedSequence >= ACK_FRAMES;
  }

  /** Acknowledge every answer so far, so that the service need not keep them. */
  ack(): string {
    this.#ackedSequence = this.#lastSequence;
    return JSON.stringify({ type: 'ack', sequence: this.#lastSequence, epoch: this.epoch });
  }

  #agree(ready: Ready): void {
    if (this.#ready && codecOf(ready) !== codecOf(this.#ready)) {
      throw refuse('unavailable', 'service', `another codec, ${codecOf(ready)}`, `${codecOf(this.#ready)}, as at the start`);
    }
    this.#ready = ready;
    this.token = this.#resume ? ready.resumeToken : null;
    if (!this.#outbox || !this.#meter) {
      this.#outbox = new Outbox(unitBytes(this.asked, ready.levels), {
        keeps: this.token !== null,
        maxHeldBytes: this.#maxHeldBytes,
      });
      this.#meter = new LatencyMeter(unitsPerS(this.asked) / CODEC_FRAMES_PER_S);
      return;
    }
    this.resumes += 1;
    // The resume has told what is here. A service that computes it again has not sent it yet, and takes no word about it.
    this.#ackedSequence = this.#lastSequence;
    this.#outbox.rewind(ready.epoch, ready.position, ready.flushes);
    if (ready.epoch === this.epoch) {
      this.#meter.restart(ready.position);
    }
  }

  #frame(frame: Frame, nowMs: number): Frame | null {
    const { frameSamples } = this.ready;
    if (frame.sequence <= this.#lastSequence) {
      this.repeatedFrames += 1;
      // Of frames that come again, too: they tell how far a stream that began anew has got.
      this.meter.answered(Math.floor(frame.position / frameSamples), nowMs);
      return null;
    }
    if (frame.sequence !== this.#lastSequence + 1) {
      throw refuse('internal', 'service', `answer ${frame.sequence}`, `${this.#lastSequence + 1}, the next`);
    }
    this.#lastSequence = frame.sequence;
    return { ...frame, latencyMs: this.meter.answered(Math.floor(frame.position / frameSamples), nowMs) };
  }

  #isNewFlush(flushed: Flushed): boolean {
    const isNew = flushed.flushes > this.#flushesAnswered;
    this.#flushesAnswered = Math.max(this.#flushesAnswered, flushed.flushes);
    return isNew;
  }

  #isNewReset(epoch: number): boolean {
    if (epoch <= this.epoch) {
      return false;
    }
    this.epoch = epoch;
    this.#lastSequence = this.#ackedSequence = -1;
    this.#flushesAnswered = 0;
    this.outbox.release(epoch, 0);
    this.meter.restart();
    return true;
  }
}

function present<T>(part: T | null): T {
  if (part === null) {
    throw refuse('unavailable', 'stream', 'no settings agreed yet', 'an open stream');
  }
  return part;
}

/** What makes the answers what they are, beside the input. */
function codecOf({ model, levels }: Ready): string {
  return `${model.sha256.slice(0, 12)}, ${model.numerics}, ${levels} levels`;
}
