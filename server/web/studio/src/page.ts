/** What people do to the page, as calls of the studio. */

import { chosen, element, onClick } from './dom.ts';
import type { Listen } from './audio.ts';
import { onPair } from './pairs.ts';
import type { Form } from './save.ts';
import type { Studio } from './studio.ts';

const FORMS: readonly Form[] = ['input.wav', 'codec.wav', 'npy', 'mimi'];

export function listenToPage(studio: Studio): void {
  const file = element('file', HTMLInputElement);
  const acts: Record<string, () => void> = {
    speak: () => studio.speak(),
    choose: () => file.click(),
    example: () => studio.playExample(),
  };
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-act]')) {
    button.addEventListener('click', () => acts[button.dataset['act'] ?? '']?.());
  }
  file.addEventListener('change', () => {
    const [given] = file.files ?? [];
    given && studio.open(given);
    file.value = '';
  });
  onClick('stop', () => studio.stop());
  onClick('play', () => studio.playOrPause());
  onPair((pair) => void studio.hear(pair));
  FORMS.forEach((form) => onClick(`save-${form.replace('.', '-')}`, () => studio.save(form)));
  const levels = element('levels', HTMLInputElement);
  levels.addEventListener('input', () => studio.setLevels(levels.valueAsNumber));
  const seek = element('seek', HTMLInputElement);
  seek.addEventListener('input', () => studio.seek(seek.valueAsNumber));
  for (const radio of document.querySelectorAll<HTMLInputElement>('input[name=listen]')) {
    radio.addEventListener('change', () => studio.listen(chosen('listen') as Listen));
  }
  for (const radio of document.querySelectorAll<HTMLInputElement>('input[name=lanes]')) {
    radio.addEventListener('change', () => studio.changeLanes());
  }
  acceptDrops((given) => studio.open(given));
}

function acceptDrops(open: (file: File) => void): void {
  const mark = (isOver: boolean) => document.body.classList.toggle('dropping', isOver);
  addEventListener('dragover', (event) => {
    event.preventDefault();
    mark(true);
  });
  addEventListener('dragleave', () => mark(false));
  addEventListener('drop', (event) => {
    event.preventDefault();
    mark(false);
    const [file] = event.dataTransfer?.files ?? [];
    file && open(file);
  });
}
