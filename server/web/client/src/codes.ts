/** Codes of a clip, and the files that hold them: `.npy`, `.mimi` and the service's JSON, as the library writes and reads them. */

import { isRecord, refuse, type MimiError } from './errors.ts';

const MAGIC_NPY = '\x93NUMPY';
const MAGIC_MIMI = 'MIMI';
const MIMI_HEADER_BYTES = 8;
const NPY_ALIGNMENT = 64;
const MOST_INT16 = 32_767;

/** Codes of a whole clip. */
export interface Codes {
  levels: number;
  frames: number;
  /** True length of the sound at 24 kHz, where it is known; the rest of the last frame is padding. */
  samples: number | null;
  /** Frame after frame, `levels` numbers each. */
  data: Uint16Array<ArrayBuffer>;
}

/** The first so many levels of codes. */
export function firstLevels(codes: Codes, levels: number): Codes {
  if (levels >= codes.levels) {
    return codes;
  }
  const data = new Uint16Array(codes.frames * levels);
  for (let frame = 0; frame < codes.frames; frame += 1) {
    data.set(codes.data.subarray(frame * codes.levels, frame * codes.levels + levels), frame * levels);
  }
  return { ...codes, levels, data };
}

/** A NumPy array `[levels, frames]`, int16, or uint16 where a code needs it. */
export function toNpy({ levels, frames, data }: Codes): Uint8Array<ArrayBuffer> {
  const descr = data.some((code) => code > MOST_INT16) ? '<u2' : '<i2';
  const words = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${levels}, ${frames}), }`;
  const head = MAGIC_NPY.length + 4;
  const length = Math.ceil((head + words.length + 1) / NPY_ALIGNMENT) * NPY_ALIGNMENT - head;
  const file = new Uint8Array(head + length + 2 * data.length);
  const view = new DataView(file.buffer);
  file.set(Uint8Array.from(`${MAGIC_NPY}\x01\x00`, (letter) => letter.charCodeAt(0)));
  view.setUint16(MAGIC_NPY.length + 2, length, true);
  file.set(new TextEncoder().encode(`${words.padEnd(length - 1)}\n`), head);
  for (let level = 0; level < levels; level += 1) {
    for (let frame = 0; frame < frames; frame += 1) {
      view.setUint16(head + length + 2 * (level * frames + frame), data[frame * levels + level] ?? 0, true);
    }
  }
  return file;
}

/** `MIMI`, i32 levels, then i16 `[frame][level]`. Throws `codes_file` where a code is above 32767, which the form cannot hold. */
export function toMimi({ levels, data }: Codes): Uint8Array<ArrayBuffer> {
  const file = new Uint8Array(MIMI_HEADER_BYTES + 2 * data.length);
  const view = new DataView(file.buffer);
  file.set(new TextEncoder().encode(MAGIC_MIMI));
  view.setInt32(4, levels, true);
  data.forEach((code, at) => {
    if (code > MOST_INT16) {
      throw refuse('codes_file', '.mimi', `a code of ${code}`, 'codes of at most 32767');
    }
    view.setUint16(MIMI_HEADER_BYTES + 2 * at, code, true);
  });
  return file;
}

/** Read codes, whichever of the three forms they have. Throws `codes_file`. */
export function parseCodes(file: Uint8Array, subject = 'codes'): Codes {
  const start = String.fromCharCode(...file.subarray(0, MAGIC_NPY.length));
  if (start === MAGIC_NPY) {
    return parseNpy(file, subject);
  }
  return start.startsWith(MAGIC_MIMI) ? parseMimi(file, subject) : parseJson(file, subject);
}

function parseNpy(file: Uint8Array, subject: string): Codes {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const isFirstVersion = file[6] === 1;
  const head = isFirstVersion ? 10 : 12;
  if (file.length < head) {
    throw broken(subject, 'a header that is cut off');
  }
  const start = head + (isFirstVersion ? view.getUint16(8, true) : view.getUint32(8, true));
  const words = new TextDecoder('latin1').decode(file.subarray(head, start));
  const kind = /'descr': *'<([iu])([248])'/.exec(words);
  const shape = /'shape': *\((\d+), *(\d+)\)/.exec(words);
  if (!kind || !shape || !/'fortran_order': *False/.test(words)) {
    throw broken(subject, words.trim().slice(0, 80) || 'no header');
  }
  const [levels, frames, bytes] = [Number(shape[1]), Number(shape[2]), Number(kind[2])];
  if (levels < 1 || file.length !== start + levels * frames * bytes) {
    throw broken(subject, `${file.length - start} bytes of ${levels} x ${frames} codes`);
  }
  const data = new Uint16Array(levels * frames);
  for (let level = 0; level < levels; level += 1) {
    for (let frame = 0; frame < frames; frame += 1) {
      const at = start + bytes * (level * frames + frame);
      const code =
        bytes === 2 ? view.getInt16(at, true) : bytes === 4 ? view.getInt32(at, true) : Number(view.getBigInt64(at, true));
      data[frame * levels + level] = checked(kind[1] === 'u' && bytes === 2 ? code & 0xffff : code, subject);
    }
  }
  return { levels, frames, samples: null, data };
}

function parseMimi(file: Uint8Array, subject: string): Codes {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const levels = file.length < MIMI_HEADER_BYTES ? 0 : view.getInt32(4, true);
  const numbers = (file.length - MIMI_HEADER_BYTES) / 2;
  if (levels < 1 || !Number.isInteger(numbers / levels)) {
    throw broken(subject, `${levels} levels, ${file.length} bytes`);
  }
  const data = Uint16Array.from({ length: numbers }, (_, at) =>
    checked(view.getInt16(MIMI_HEADER_BYTES + 2 * at, true), subject),
  );
  return { levels, frames: numbers / levels, samples: null, data };
}

function parseJson(file: Uint8Array, subject: string): Codes {
  let body: unknown;
  try {
    body = JSON.parse(new TextDecoder().decode(file));
  } catch {
    throw broken(subject, 'neither of them');
  }
  const rows = isRecord(body) ? body['codes'] : null;
  if (!Array.isArray(rows) || rows.length === 0 || !rows.every((row) => Array.isArray(row) && row.length === rows[0].length)) {
    throw broken(subject, 'JSON without codes[level][frame]');
  }
  const [levels, frames] = [rows.length, rows[0].length as number];
  const data = Uint16Array.from({ length: levels * frames }, (_, at) =>
    checked(rows[at % levels][Math.floor(at / levels)], subject),
  );
  const samples = (body as Record<string, unknown>)['samples'];
  return { levels, frames, samples: Number.isSafeInteger(samples) ? (samples as number) : null, data };
}

function checked(code: unknown, subject: string): number {
  if (!Number.isInteger(code) || (code as number) < 0 || (code as number) > 0xffff) {
    throw broken(subject, `the code ${JSON.stringify(code)}`);
  }
  return code as number;
}

function broken(subject: string, found: string): MimiError {
  return refuse('codes_file', subject, found, '.npy [levels, frames], .mimi, or JSON of the service');
}
