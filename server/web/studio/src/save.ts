/** A take to files. */

import { toMimi, toNpy, toWav } from 'mimi-client';

import type { Take } from './take.ts';

export type Form = 'input.wav' | 'codec.wav' | 'npy' | 'mimi';

const MEDIA: Record<string, string> = { wav: 'audio/wav', npy: 'application/octet-stream', mimi: 'application/octet-stream' };

/** The file of one form. Sound is cut to its true length; codes have so many levels. */
export function fileOf(take: Take, form: Form, levels: number): Uint8Array<ArrayBuffer> {
  switch (form) {
    case 'input.wav':
      return toWav(take.input?.view() ?? new Int16Array());
    case 'codec.wav':
      return toWav(take.output.view(0, take.samples));
    case 'npy':
      return toNpy(take.codes(levels));
    case 'mimi':
      return toMimi(take.codes(levels));
  }
}

/** Have the browser save it. */
export function save(take: Take, form: Form, levels: number): void {
  const name = form.endsWith('.wav') ? `${take.name}-${form}` : `${take.name}-${levels}.${form}`;
  const type = MEDIA[form.split('.').at(-1) as string] as string;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([fileOf(take, form, levels)], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
