/** What a client asks of a stream, and how it behaves on the line. The service checks what it is asked for. */

import { refuse } from './errors.ts';

/** `encode`: audio to codes; `decode`: codes to audio; `echo`: audio to the audio that its codes stand for. */
export type Mode = 'encode' | 'decode' | 'echo';
export type SampleFormat = 's16le' | 'f32le';

const MODES: readonly Mode[] = ['encode', 'decode', 'echo'];
const SAMPLE_BYTES: Record<SampleFormat, number> = { s16le: 2, f32le: 4 };
const CODE_BYTES = 2;
export const CODEC_FRAMES_PER_S = 12.5;

/** What the stream shall be. */
export interface StreamSettings {
  mode?: Mode;
  /** RVQ levels, 1 .. the model's; absent, the model's default. */
  levels?: number;
  /** Of audio in and out; `s16le` if absent. */
  sampleFormat?: SampleFormat;
  /** Of audio in and out, 8000 .. 96000; 24000 if absent. Another rate is resampled by the service. */
  sampleRateHz?: number;
  /** Of audio in, 1 or 2, interleaved, mixed to their mean. Audio out is mono. */
  channels?: 1 | 2;
  /** In mode `echo`, whether each frame's codes come too, before its audio. */
  echoCodes?: boolean;
  /** Whether the service shall read as fast as it can, which it must allow; else it reads at most a few times real time. */
  freePace?: boolean;
  /** An assertion: a service whose model runs under others refuses. */
  numerics?: string;
}

/** How the client behaves on the line. Every buffer has a bound. */
export interface LineOptions {
  /** One of the service's keys, where it asks for one. It goes into a header, for a token; the token goes into the handshake. */
  key?: string;
  /** A short-lived token instead of a key, or what fetches one; asked for at every connection. */
  token?: string | (() => string | Promise<string>);
  /** Whether a lost connection is made again and the stream goes on where it was, bit for bit. */
  resume: boolean;
  /** How long a lost connection is tried again; `null` for as long as the service keeps the stream. */
  giveUpMs: number | null;
  /** How long a service that is full, draining or away is asked again at the start. */
  waitForPlaceMs: number;
  /** Before the first new try; each further one waits up to twice as long, evenly at random from zero up. */
  firstDelayMs: number;
  longestDelayMs: number;
  /** For a connection to come about, settings included. */
  openTimeoutMs: number;
  /** For what was sent to be answered when the stream is closed. */
  closeTimeoutMs: number;
  /** Silence after which the service is asked whether it is there. */
  pingIntervalMs: number;
  /** Silence after that from which it counts as dead. */
  pingTimeoutMs: number;
  /** Input waiting to be sent; `send` waits while there is more. */
  maxUnsentBytes: number;
  /** Input kept so that it can be sent again after a crash of the service. What is beyond is forgotten, the oldest first. */
  maxHeldBytes: number;
  /** Frames waiting to be read; then no more input is sent, so that none are answered. */
  maxReceivedFrames: number;
  /** What makes connections, where the platform has no WebSocket of its own. */
  WebSocket: typeof globalThis.WebSocket;
}

/** Settings, filled in as far as the client can. */
export interface Asked {
  mode: Mode;
  sampleFormat: SampleFormat;
  sampleRateHz: number;
  channels: number;
  hello: Record<string, unknown>;
}

/** Fill in defaults. Throws `setting` for a mode or format that this client does not know. */
export function asked(settings: StreamSettings): Asked {
  const { mode = 'encode', sampleFormat = 's16le', sampleRateHz = 24_000, channels = 1, levels, numerics } = settings;
  if (!MODES.includes(mode)) {
    throw refuse('setting', 'mode', String(mode), MODES.join(' | '));
  }
  if (!(sampleFormat in SAMPLE_BYTES)) {
    throw refuse('setting', 'sampleFormat', String(sampleFormat), Object.keys(SAMPLE_BYTES).join(' | '));
  }
  const hello = {
    mode,
    format: sampleFormat,
    sample_rate: sampleRateHz,
    ...(mode === 'decode' ? {} : { channels }),
    ...(settings.echoCodes ? { echo_codes: 'on' } : {}),
    ...(settings.freePace ? { pace: 'free' } : {}),
    ...(levels === undefined ? {} : { levels }),
    ...(numerics === undefined ? {} : { numerics }),
  };
  return { mode, sampleFormat, sampleRateHz, channels, hello };
}

/** Bytes of one unit of input: a sample of all channels, or in mode `decode` a frame of codes. */
export function unitBytes({ mode, sampleFormat, channels }: Asked, levels: number): number {
  return mode === 'decode' ? CODE_BYTES * levels : SAMPLE_BYTES[sampleFormat] * channels;
}

/** Rate of the input, in samples or frames of codes. */
export function unitsPerS({ mode, sampleRateHz }: Asked): number {
  return mode === 'decode' ? CODEC_FRAMES_PER_S : sampleRateHz;
}

/** Fill in what is left out. Throws `unavailable` where the platform has no WebSocket and none is given. */
export function lineOptions(options: Partial<LineOptions>): LineOptions {
  const made = {
    resume: true,
    giveUpMs: null,
    waitForPlaceMs: 0,
    firstDelayMs: 100,
    longestDelayMs: 5_000,
    openTimeoutMs: 10_000,
    closeTimeoutMs: 5_000,
    pingIntervalMs: 20_000,
    pingTimeoutMs: 20_000,
    maxUnsentBytes: 1 << 18,
    maxHeldBytes: 1 << 25,
    maxReceivedFrames: 256,
    WebSocket: globalThis.WebSocket,
    ...options,
  };
  if (typeof made.WebSocket !== 'function') {
    throw refuse('unavailable', 'WebSocket', 'none on this platform', 'Node 22 or newer, or the option WebSocket');
  }
  return made;
}
