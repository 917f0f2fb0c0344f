/** Where the page says that something does not go on, and asks for a key if that is why. */

import { element } from './dom.ts';
import type { Refusal } from './words.ts';

const ASK_FOR_KEY = ['unauthorized', 'token_expired'];

export class RefusalBox {
  #box = element('refusal', HTMLElement);
  #form = element('key-entry', HTMLFormElement);
  #key = element('key', HTMLInputElement);

  /** @param entered is given a key */
  constructor(entered: (key: string) => void) {
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      entered(this.#key.value.trim());
    });
  }

  /** The code of the refusal that is shown; empty where none is. */
  get code(): string {
    return this.#box.dataset['code'] ?? '';
  }

  show(refusal: Refusal | null): void {
    this.#box.dataset['code'] = refusal?.code ?? '';
    const texts = refusal
      ? ([
          ['strong', refusal.headline],
          ['span', refusal.advice],
          ['small', refusal.message],
        ] as const)
      : [];
    this.#box.replaceChildren(
      ...texts
        .filter(([, text]) => text)
        .map(([name, text]) => {
          const [paragraph, inner] = [document.createElement('p'), document.createElement(name)];
          inner.textContent = text;
          paragraph.append(inner);
          return paragraph;
        }),
    );
    const isAsked = refusal !== null && ASK_FOR_KEY.includes(refusal.code);
    if (isAsked && this.#form.hidden) {
      this.#key.value = '';
    }
    this.#form.hidden = !isAsked;
    if (isAsked) {
      this.#key.focus();
    }
  }
}
