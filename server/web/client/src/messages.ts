/**
 * What a service sends under `mimi.v1`, as typed events. Nothing that arrives is trusted. Normative: `docs/protocol.md`.
 *
 * Messages of types that this client does not know are passed over, so that a later service may say more.
 */

import { isRecord, refusal, refuse, type MimiError } from './errors.ts';
import type { SampleFormat } from './settings.ts';

export const SUBPROTOCOL = 'mimi.v1';
const VERSION = 1;
const HEADER_BYTES = 16;
const KIND_CODES = 1;
const KIND_PCM = 2;
const MOST_QUOTED_CHARS = 64;

/** One answer: a frame's codes, or audio. */
export interface Frame {
  type: 'frame';
  /** Counts answers from 0, without a gap; starts again at a reset. */
  sequence: number;
  /** First sample of the frame, at 24 kHz. */
  position: number;
  /** One per level, where the answer is codes. */
  codes?: Uint16Array<ArrayBuffer>;
  /** Full scale -1 .. 1, at the stream's rate, where the answer is audio. */
  pcm?: Float32Array<ArrayBuffer>;
  /** From sending the last input of the frame until now; `null` where the frame was sent again after a resume. */
  latencyMs: number | null;
}

/** The settings are agreed, or the stream is resumed. */
export interface Ready {
  type: 'ready';
  session: string;
  model: { name: string; sha256: string; weight_class: string; numerics: string };
  /** All settings as the service has them, by the names of the protocol. */
  settings: Record<string, unknown>;
  levels: number;
  /** Of the codec. */
  sampleRateHz: number;
  frameSamples: number;
  codebookEntries: number;
  creditFrames: number;
  maxMessageBytes: number;
  resumed: boolean;
  resumeToken: string | null;
  resumeGraceMs: number;
  epoch: number;
  /** Input of the epoch that the service holds, in samples at the client's rate or frames of codes. */
  position: number;
  /** Flushes of the epoch that the service has done. */
  flushes: number;
  /** After a resume with resampled input: `continued`, or `reprimed` where the codes may differ for a moment. */
  resampler: string | null;
}

/** A flush is done; counts are since the start or the last reset. */
export interface Flushed {
  type: 'flushed';
  frames: number;
  /** True length at 24 kHz, padding left out. */
  samples: number;
  paddedSamples: number;
  receivedSamples: number;
  sentSamples: number;
  /** Flushes so far, this one included. */
  flushes: number;
}

export type ServerEvent =
  | Frame
  | Ready
  | Flushed
  | { type: 'reset_done'; epoch: number }
  | { type: 'checkpoint'; position: number; epoch: number }
  | { type: 'warning'; code: string; message: string }
  | { type: 'goaway'; timeLeftMs: number; resumeToken: string | null }
  | { type: 'error'; error: MimiError };

/** Read a text message; `null` for a type that is not known or needs no answer. Throws `unavailable`: it is not of `mimi.v1`. */
export function parseText(text: string): ServerEvent | null {
  let fields: unknown;
  try {
    fields = JSON.parse(text);
  } catch {
    throw foreign('text message', text);
  }
  if (!isRecord(fields)) {
    throw foreign('text message', text);
  }
  const parse = Object.hasOwn(PARSERS, String(fields['type'])) ? PARSERS[String(fields['type'])] : undefined;
  return parse ? parse(fields) : null;
}

/** Read a binary message. Throws `unavailable`: it is not of `mimi.v1`. */
export function parseBinary(message: ArrayBuffer, format: SampleFormat): Frame {
  if (message.byteLength < HEADER_BYTES) {
    throw foreign('frame', `${message.byteLength} bytes`);
  }
  const view = new DataView(message);
  const [version, kind, width] = [view.getUint8(0), view.getUint8(1), view.getUint16(2, true)];
  const bytes = message.byteLength - HEADER_BYTES;
  if (version !== VERSION) {
    throw foreign('frame.version', String(version));
  }
  const head = {
    type: 'frame',
    sequence: view.getUint32(4, true),
    position: Number(view.getBigUint64(8, true)),
    latencyMs: null,
  } as const;
  const payload = message.slice(HEADER_BYTES);
  if (kind === KIND_CODES && bytes === 2 * width) {
    return { ...head, codes: new Uint16Array(payload) };
  }
  if (kind === KIND_PCM && width === 1 && bytes % (format === 's16le' ? 2 : 4) === 0) {
    return {
      ...head,
      pcm:
        format === 's16le' ? Float32Array.from(new Int16Array(payload), (value) => value / 32768) : new Float32Array(payload),
    };
  }
  throw foreign('frame', `kind ${kind}, width ${width}, ${bytes} bytes`);
}

type Fields = Record<string, unknown>;

const PARSERS: Record<string, (fields: Fields) => ServerEvent> = {
  ready,
  flushed: (fields) => ({
    type: 'flushed',
    frames: whole(fields, 'frames'),
    samples: whole(fields, 'samples'),
    paddedSamples: whole(fields, 'padded_samples'),
    receivedSamples: whole(fields, 'received_samples'),
    sentSamples: whole(fields, 'sent_samples'),
    flushes: whole(fields, 'flushes'),
  }),
  reset_done: (fields) => ({ type: 'reset_done', epoch: whole(fields, 'epoch') }),
  checkpoint: (fields) => ({ type: 'checkpoint', position: whole(fields, 'position'), epoch: whole(fields, 'epoch') }),
  warning: (fields) => ({ type: 'warning', code: String(fields['code']), message: String(fields['message']) }),
  goaway: (fields) => ({
    type: 'goaway',
    timeLeftMs: whole(fields, 'time_left_ms'),
    resumeToken: text(fields['resume_token']),
  }),
  error: (fields) => ({ type: 'error', error: refusal(fields) }),
};

function ready(fields: Fields): Ready {
  const [settings, codec, limits, model] = [
    object(fields, 'settings'),
    object(fields, 'codec'),
    object(fields, 'limits'),
    object(fields, 'model'),
  ];
  const count = (name: string) => (name in fields ? whole(fields, name) : 0);
  return {
    type: 'ready',
    session: String(fields['session']),
    model: {
      name: String(model['name']),
      sha256: String(model['sha256']),
      weight_class: String(model['weight_class']),
      numerics: String(model['numerics']),
    },
    settings,
    levels: whole(settings, 'levels', 1),
    sampleRateHz: whole(codec, 'sample_rate', 1),
    frameSamples: whole(codec, 'frame_samples', 1),
    codebookEntries: whole(codec, 'codebook_entries', 1),
    creditFrames: whole(fields, 'credit_frames', 1),
    maxMessageBytes: whole(limits, 'max_message_bytes', 1),
    resumed: fields['resumed'] === true,
    resumeToken: text(fields['resume_token']),
    resumeGraceMs: count('resume_grace_ms'),
    epoch: count('epoch'),
    position: count('position'),
    flushes: count('flushes'),
    resampler: text(fields['resampler']),
  };
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function object(fields: Fields, name: string): Fields {
  const value = fields[name];
  if (!isRecord(value)) {
    throw foreign(name, JSON.stringify(value));
  }
  return value;
}

function whole(fields: Fields, name: string, least = 0): number {
  const value = fields[name];
  if (!Number.isSafeInteger(value) || (value as number) < least) {
    throw foreign(name, JSON.stringify(value));
  }
  return value as number;
}

function foreign(subject: string, found: string | undefined): MimiError {
  return refuse('unavailable', `service: ${subject}`, (found ?? 'nothing').slice(0, MOST_QUOTED_CHARS), 'a message of mimi.v1');
}
