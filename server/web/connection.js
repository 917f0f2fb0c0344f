// @ts-check
import { parseFrame, streamUrl, SUBPROTOCOL } from './wire.js';

/** @import { Frame, ServerError, StreamSettings } from './wire.js' */

const CLOSE_DONE = 1000;

/**
 * @typedef {object} Ending how a connection ended
 * @property {boolean} wasReady whether the server had taken the stream
 * @property {boolean} asAsked whether it ended because we asked for it
 * @property {number} closeCode
 * @property {ServerError | null} error what the server said before, if it said something
 */

/**
 * @typedef {object} ConnectionEvents
 * @property {(frame: Frame) => void} frame
 * @property {(code: string, text: string) => void} notice a warning; the stream goes on
 * @property {(ending: Ending) => void} end called once, last
 */

/** One WebSocket with the server: PCM out, frames in. */
export class StreamConnection {
  #socket;
  #events;
  #wasReady = false;
  /** @type {ServerError | null} */
  #error = null;
  #finishing = false;
  #ended = false;
  /** @type {() => void} */
  #settle = () => {};

  /**
   * @param {string} base address of the page
   * @param {StreamSettings} settings
   * @param {ConnectionEvents} events
   */
  constructor(base, settings, events) {
    this.#events = events;
    this.#socket = new WebSocket(streamUrl(base, settings), SUBPROTOCOL);
    this.#socket.binaryType = 'arraybuffer';
    this.#socket.onmessage = (event) => this.#receive(event.data);
    this.#socket.onclose = (event) => this.#closed(event.code);
    /** Settles once the server has taken the stream, or the connection has ended instead. @type {Promise<void>} */
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Whether audio may be sent. */
  get ready() {
    return this.#wasReady && !this.#finishing && this.#socket.readyState === WebSocket.OPEN;
  }

  /** Bytes that wait in the browser because the network or the server does not take them. */
  get waitingBytes() {
    return this.#socket.bufferedAmount;
  }

  /** @param {Int16Array<ArrayBuffer>} samples interleaved, in the byte order of the machine, which is little-endian wherever browsers run */
  send(samples) {
    if (this.ready) {
      this.#socket.send(samples);
    }
  }

  /** Ask for everything that is still owed, and for a close after it. */
  finish() {
    if (this.ready) {
      this.#socket.send('{"type":"flush"}');
      this.#socket.send('{"type":"close"}');
      this.#finishing = true;
    } else if (!this.#finishing) {
      this.drop();
    }
  }

  /** End at once. */
  drop() {
    this.#finishing = true;
    this.#socket.close(CLOSE_DONE);
    // The browser would wait long for a server that does not answer.
    this.#closed(CLOSE_DONE);
  }

  /** @param {string | ArrayBuffer} data */
  #receive(data) {
    if (typeof data !== 'string') {
      this.#events.frame(parseFrame(data));
      return;
    }
    const message = JSON.parse(data);
    if (message.type === 'ready') {
      this.#wasReady = true;
      this.#settle();
    } else if (message.type === 'error') {
      this.#error = message;
    } else if (message.type === 'warning') {
      this.#events.notice(message.code, message.message);
    } else if (message.type === 'goaway') {
      const seconds = Math.round(message.time_left_ms / 1000);
      this.#events.notice(message.code, `the server goes down; this stream has ${seconds} s left`);
    }
  }

  /** @param {number} closeCode */
  #closed(closeCode) {
    if (this.#ended) {
      return;
    }
    this.#ended = true;
    this.#socket.onmessage = this.#socket.onclose = null;
    this.#events.end({
      wasReady: this.#wasReady,
      asAsked: this.#finishing && this.#error === null && (closeCode === CLOSE_DONE || !this.#wasReady),
      closeCode,
      error: this.#error,
    });
    this.#settle();
  }
}
