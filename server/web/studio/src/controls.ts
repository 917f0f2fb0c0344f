/** The buttons, words and numbers around the lanes, as each state has them. */

import { element, say, show } from './dom.ts';
import { bitRateInWords, type ModelFacts } from './service.ts';
import { FRAME_S, type Take } from './take.ts';

/** `empty`: nothing was said yet; `take`: something was, and can be played, saved, and decoded at other levels. */
export type State = 'loading' | 'empty' | 'starting' | 'live' | 'finishing' | 'take';

const STOP_WORDS: Partial<Record<State, string>> = { starting: 'Cancel', live: 'Stop', finishing: 'Stop now' };

/** Show a state, and what is said of it. */
export function showState(state: State, status: string, take: Take | null): void {
  const isBusy = state === 'starting' || state === 'live' || state === 'finishing';
  const isIdle = state === 'empty' || state === 'take';
  document.body.dataset['state'] = state;
  show('welcome', take === null);
  show('stage', take !== null);
  show('stop', isBusy);
  show('play', state === 'take');
  show('seek', state === 'take');
  show('listen-off', isBusy);
  say('stop-words', STOP_WORDS[state] ?? 'Stop');
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-act]')) {
    button.disabled = !isIdle;
  }
  for (const button of document.querySelectorAll<HTMLButtonElement>('#save button')) {
    button.disabled = state !== 'take' || (button.id === 'save-input-wav' && !take?.input);
  }
  if (state === 'starting') {
    showPlaying(false);
  }
  // The button that began it is gone, and whoever uses the keyboard with it.
  if (state === 'live' && (document.activeElement === document.body || document.activeElement?.matches(':disabled'))) {
    element('stop', HTMLButtonElement).focus({ preventScroll: true });
  }
  showStatus(status, false);
}

/** @param isAway whether the connection is lost */
export function showStatus(status: string, isAway: boolean): void {
  element('status', HTMLElement).classList.toggle('away', isAway);
  say('status', status);
}

export function showPlaying(isPlaying: boolean): void {
  say('play-words', isPlaying ? 'Pause' : 'Play');
  element('play', HTMLButtonElement).classList.toggle('playing', isPlaying);
}

export function showClock(atS: number): void {
  say('clock', `${atS.toFixed(1)} s`);
}

/** How many levels are heard, and what that means. */
export function showLevels(levels: number, model: ModelFacts): void {
  element('levels', HTMLInputElement).value = String(levels);
  say('levels-value', String(levels));
  say('bit-rate', bitRateInWords(model, levels));
  say('output-label', `Codec, ${levels} ${levels === 1 ? 'level' : 'levels'}`);
}

/** A take is there: what can be chosen of it. */
export function offerTake(take: Take): void {
  element('levels', HTMLInputElement).max = String(take.levels);
  for (const radio of document.querySelectorAll<HTMLInputElement>('input[name=listen][value=input]')) {
    radio.disabled = take.input === null;
  }
}

/** A take is done: where it may be played from. */
export function offerPlaying(take: Take): void {
  const lengthS = take.frames * FRAME_S;
  const seek = element('seek', HTMLInputElement);
  seek.max = lengthS.toFixed(2);
  seek.value = '0';
  showClock(lengthS);
  element('play', HTMLButtonElement).focus({ preventScroll: true });
}

/** Where to play from; from the beginning again at the end. */
export function placeS(): number {
  const seek = element('seek', HTMLInputElement);
  return seek.valueAsNumber >= Number(seek.max) - 0.05 ? 0 : seek.valueAsNumber;
}
