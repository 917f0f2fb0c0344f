// @ts-check
import { AnswerTimes } from './answer-times.js';
import { StreamConnection } from './connection.js';
import { CodeHistory, PeakHistory } from './history.js';
import { Player } from './player.js';
import { KIND_CODES, KIND_PCM } from './wire.js';
import { Refusal, refusalOf } from './words.js';
import { loadWorklet } from './worklets.js';

/** @import { Access } from './access.js' */
/** @import { Ending } from './connection.js' */
/** @import { Source } from './sources.js' */
/** @import { Frame } from './wire.js' */

/** Sound that may wait in the browser to be sent. */
const MOST_WAITING_S = 5;

/**
 * @typedef {object} LiveSettings
 * @property {string} base address of the page
 * @property {Access} access
 * @property {string} token leave to stream, where the service asks for a key; else empty
 * @property {boolean} echo whether the sound that the codes stand for comes back
 * @property {number} levels
 * @property {number} frameRateHz of the model
 */

/**
 * @typedef {object} LiveEvents
 * @property {(samples: Int16Array) => void} input samples went to the server
 * @property {() => void} output codes or sound came from it
 * @property {(text: string) => void} notice something to know; the stream goes on
 * @property {() => void} finishing the source has ended by itself; answers are still awaited
 * @property {(refusal: Refusal | null) => void} end called once, last; null where it ended in order
 */

/** One stream from its source to the loudspeaker, and what it has brought so far. */
export class LiveStream {
  #source;
  #settings;
  #events;
  #connection;
  /** @type {Promise<void> | null} */
  #sourceStopped = null;
  /** @type {Refusal | null} */
  #refusal = null;
  /** @type {Player | null} */
  player = null;
  codes;
  input;
  output;
  times;

  /**
   * @param {Source} source is closed when the stream ends
   * @param {LiveSettings} settings
   * @param {LiveEvents} events
   */
  constructor(source, settings, events) {
    const rateHz = source.context.sampleRate;
    const frameSamples = rateHz / settings.frameRateHz;
    this.#source = source;
    this.#settings = settings;
    this.#events = events;
    this.codes = new CodeHistory(settings.levels);
    this.input = new PeakHistory(frameSamples);
    this.output = new PeakHistory(frameSamples);
    this.times = new AnswerTimes(frameSamples);
    this.rateHz = rateHz;
    this.#connection = new StreamConnection(
      settings.base,
      {
        mode: settings.echo ? 'echo' : 'encode',
        levels: settings.levels,
        sample_rate: rateHz,
        channels: source.channels,
        token: settings.token,
      },
      {
        frame: (frame) => this.#receive(frame),
        notice: (_, text) => events.notice(text),
        end: (ending) => this.#ended(ending),
      },
    );
  }

  get channels() {
    return this.#source.channels;
  }

  /** Wait for the server, then let the sound in. */
  async run() {
    try {
      if (this.#settings.echo) {
        await loadWorklet(this.#source.context, 'player');
        this.player = new Player(this.#source.context);
      }
      await this.#connection.settled;
      if (this.#connection.ready) {
        await this.#source.start(
          (samples) => this.#send(samples),
          (refusal) => {
            this.#events.finishing();
            void this.stop(refusal);
          },
        );
      }
    } catch (cause) {
      void this.stop(cause instanceof Refusal ? cause : new Refusal('page_failed', String(cause)));
    }
  }

  /**
   * End in order: the last samples are sent, the last answers awaited and played. Called again, end at once.
   * @param {Refusal | null} [refusal] why, where nobody asked for it
   */
  async stop(refusal = null) {
    this.#refusal ??= refusal;
    if (this.#sourceStopped) {
      this.#connection.drop();
      return;
    }
    await this.#stopSource();
    this.#connection.finish();
  }

  /** @param {Int16Array<ArrayBuffer>} samples */
  #send(samples) {
    this.#connection.send(samples);
    this.times.sent(samples.length / this.channels, performance.now());
    this.input.push(samples, this.channels);
    this.#events.input(samples);
    if (this.#connection.waitingBytes > MOST_WAITING_S * this.rateHz * this.channels * 2) {
      void this.stop(new Refusal('behind'));
      this.#connection.drop();
    }
  }

  /** @param {Frame} frame */
  #receive(frame) {
    if (frame.kind === KIND_CODES) {
      this.times.answered(this.codes.end, performance.now());
      this.codes.push(new Uint16Array(frame.payload));
    } else if (frame.kind === KIND_PCM) {
      const samples = new Int16Array(frame.payload);
      this.output.push(samples);
      this.player?.play(samples);
    }
    this.#events.output();
  }

  #stopSource() {
    this.#sourceStopped ??= this.#source.stop();
    return this.#sourceStopped;
  }

  /** @param {Ending} ending */
  async #ended(ending) {
    const asked = this.#sourceStopped !== null;
    await this.#stopSource();
    await this.player?.finish();
    this.#source.close();
    if (!this.#refusal && !(asked && ending.asAsked)) {
      this.#refusal = await refusalOf(ending, this.#settings.access);
    }
    this.#events.end(this.#refusal);
  }
}
