/** Whole clips over a stream: one call, one answer. */

import type { Codes } from './codes.ts';
import type { Flushed } from './messages.ts';
import type { Payload } from './payload.ts';
import type { StreamSettings } from './settings.ts';
import { MimiStream, type StreamOptions } from './stream.ts';

/** What {@link duplex} gives back. */
export interface Echo {
  codes: Codes;
  /** The sound that the codes stand for, as long as what was sent, at its rate. */
  pcm: Float32Array<ArrayBuffer>;
}

/**
 * Encode a clip.
 *
 * @param pcm samples of full scale -1 .. 1, or 16-bit ones
 * @param settings its rate and channels, and the levels wanted
 */
export async function encode(
  url: string | URL,
  pcm: Int16Array | Float32Array,
  settings: Omit<StreamSettings, 'mode'> = {},
  options: StreamOptions = {},
): Promise<Codes> {
  return (await convert(url, pcm, { ...settings, mode: 'encode' }, options)).codes;
}

/** Decode a clip: 24 kHz mono, cut to the true sample count where the codes have it. */
export async function decode(url: string | URL, codes: Codes, options: StreamOptions = {}): Promise<Float32Array<ArrayBuffer>> {
  const { pcm } = await convert(url, codes.data, { mode: 'decode', levels: codes.levels, sampleFormat: 'f32le' }, options);
  return codes.samples === null ? pcm : pcm.slice(0, codes.samples);
}

/** Encode a clip and decode its codes in one go: hear the codec. */
export async function duplex(
  url: string | URL,
  pcm: Int16Array | Float32Array,
  settings: Omit<StreamSettings, 'mode'> = {},
  options: StreamOptions = {},
): Promise<Echo> {
  const { flushed, ...echo } = await convert(url, pcm, { ...settings, mode: 'echo', echoCodes: true }, options);
  return { ...echo, pcm: echo.pcm.slice(0, flushed.receivedSamples) };
}

async function convert(
  url: string | URL,
  input: Payload,
  settings: StreamSettings,
  options: StreamOptions,
): Promise<Echo & { flushed: Flushed }> {
  const stream = await MimiStream.connect(url, settings, options);
  try {
    const { levels } = stream.ready;
    const codes: Uint16Array[] = [];
    const sound: Float32Array[] = [];
    const frames = stream.run([input]);
    let item = await frames.next();
    for (; !item.done; item = await frames.next()) {
      item.value.codes && codes.push(item.value.codes);
      item.value.pcm && sound.push(item.value.pcm);
    }
    const flushed = item.value;
    return {
      flushed,
      codes: {
        levels,
        frames: codes.length,
        samples: flushed.samples,
        data: joined(codes, new Uint16Array(codes.length * levels)),
      },
      pcm: joined(sound, new Float32Array(sound.reduce((sum, part) => sum + part.length, 0))),
    };
  } finally {
    await stream.close();
  }
}

function joined<T extends Uint16Array | Float32Array>(parts: readonly (Uint16Array | Float32Array)[], whole: T): T {
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
