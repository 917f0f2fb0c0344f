// @ts-check
import { Refusal, refusalOfAnswer } from './words.js';

/**
 * The way in to a service that asks for a key. The key stays in the page's memory, nowhere else, and goes only into headers; a
 * WebSocket, which has none, gets a token that is soon worth nothing.
 */
export class Access {
  #base;
  #key = '';

  /** @param {string} base address of the page */
  constructor(base) {
    this.#base = base;
  }

  /** @param {string} key what the service is asked with from now on; empty for none */
  use(key) {
    // Headers take bytes, and the service takes those of UTF-8.
    this.#key = String.fromCharCode(...new TextEncoder().encode(key));
  }

  /**
   * @param {string} path
   * @param {RequestInit} [options]
   * @returns {Promise<Response>}
   */
  fetch(path, options = {}) {
    const headers = this.#key ? { Authorization: `Bearer ${this.#key}` } : {};
    return fetch(new URL(path, this.#base), { cache: 'no-store', headers, ...options });
  }

  /**
   * Get leave for one stream.
   * @returns {Promise<string>} a token; empty where no key was given
   * @throws {Refusal}
   */
  async streamToken() {
    if (!this.#key) {
      return '';
    }
    let answer;
    try {
      answer = await this.fetch('v1/token?scope=stream', { method: 'POST' });
    } catch {
      throw new Refusal('unreachable');
    }
    if (!answer.ok) {
      throw await refusalOfAnswer(answer);
    }
    return (await answer.json()).token;
  }
}
