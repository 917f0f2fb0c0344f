// @ts-check
import { element } from './dom.js';

/** @import { Access } from './access.js' */
/** @import { Refusal } from './words.js' */

const CODES = ['unauthorized', 'token_expired'];

/** The field for a key, there while the service asks for one. */
export class KeyEntry {
  #form = element('key-entry', HTMLFormElement);
  #key = element('key', HTMLInputElement);

  /**
   * @param {Access} access is given the key
   * @param {() => void} entered is called after it
   */
  constructor(access, entered) {
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      access.use(this.#key.value.trim());
      entered();
    });
  }

  /**
   * Show the field if a refusal asks for a key, and put it away otherwise.
   * @param {Refusal | null} refusal
   */
  show(refusal) {
    const isAsked = refusal !== null && CODES.includes(refusal.code);
    if (isAsked && this.#form.hidden) {
      this.#key.value = '';
    }
    this.#form.hidden = !isAsked;
    if (isAsked) {
      this.#key.focus();
    }
  }
}
