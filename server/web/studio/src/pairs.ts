/** Buttons that play a take from its beginning: what went in, or so many of its levels, one press apart. */

import { show } from './dom.ts';
import type { Take } from './take.ts';

/** What went in, or so many levels of what came out. */
export type Pair = 'input' | number;

function buttons(): HTMLButtonElement[] {
  return [...document.querySelectorAll<HTMLButtonElement>('button[data-pair]')];
}

function pairOf(button: HTMLButtonElement): Pair {
  const said = button.dataset['pair'] ?? '';
  return said === 'input' ? said : Number(said);
}

export function onPair(act: (pair: Pair) => void): void {
  for (const button of buttons()) {
    button.addEventListener('click', () => act(pairOf(button)));
  }
}

/** A take is done: offer what it has; `null`: there is none. */
export function offerPairs(take: Take | null): void {
  show('pairs', take !== null);
  for (const button of buttons()) {
    const pair = pairOf(button);
    button.hidden = pair === 'input' ? !take?.input : pair > (take?.levels ?? 0);
  }
}

/** Mark the one that is heard. */
export function showPair(heard: Pair): void {
  for (const button of buttons()) {
    button.setAttribute('aria-pressed', String(pairOf(button) === heard));
  }
}
