/** Lists that must be those of the documents, and files that must be those of the library. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import {
  ERROR_CODES,
  firstLevels,
  MimiError,
  parseCodes,
  parseWav,
  streamUrl,
  toMimi,
  toNpy,
  toWav,
  type Codes,
} from '../src/index.ts';
import { serviceUrl } from '../src/access.ts';
import { Outbox } from '../src/outbox.ts';
import { parseBinary, parseText } from '../src/messages.ts';

const DOCS = new URL('../../../../docs/', import.meta.url);
const MIMI = process.env['MIMI'] ?? 'mimi';
const codes: Codes = {
  levels: 3,
  frames: 5,
  samples: null,
  data: Uint16Array.from({ length: 15 }, (_, at) => (at * 677) % 2048),
};

test('error codes are those of the one table', () => {
  const text = readFileSync(new URL('protocol.md', DOCS), 'utf8');
  const rows = [...text.slice(text.indexOf('\n## Errors')).matchAll(/^\| `(\w+)` \| \d+ \| \d+ \|$/gm)].map(([, code]) => code);
  assert.deepEqual([...ERROR_CODES], rows);
});

test('every message that a service may send is known, or passed over', () => {
  const described = JSON.parse(readFileSync(new URL('asyncapi.json', DOCS), 'utf8'));
  const names = Object.keys(described.components.messages).filter((name) => name.startsWith('server_'));
  const known = ['ready', 'flushed', 'reset_done', 'warning', 'checkpoint', 'goaway', 'error'];
  // Text belongs to mode talk, which this client does not ask for.
  const passedOver = ['codes', 'pong', 'stats', 'text'];
  const binary = ['frame'];
  assert.deepEqual(names.map((name) => name.replace('server_', '')).sort(), [...known, ...passedOver, ...binary].sort());
  for (const type of known) {
    // Without its fields it is refused, or stands for an error without facts: it is read.
    assert.ok(type === 'error' || type === 'warning' || throws(() => parseText(JSON.stringify({ type }))), type);
  }
  for (const type of [...passedOver, 'news']) {
    assert.equal(parseText(JSON.stringify({ type })), null);
  }
});

function throws(work: () => unknown): boolean {
  try {
    work();
    return false;
  } catch {
    return true;
  }
}

test('what is not of mimi.v1 is refused', () => {
  const refused = (work: () => unknown) =>
    assert.throws(work, (error) => error instanceof MimiError && error.code === 'unavailable');
  for (const text of [
    '',
    '[]',
    'null',
    '{"type":"ready"}',
    '{"type":"flushed","frames":-1}',
    '{"type":"reset_done","epoch":1.5}',
  ]) {
    refused(() => parseText(text));
  }
  for (const bytes of [
    [],
    [1, 1, 0, 0],
    [2, 1, ...Array(14).fill(0)],
    [1, 3, ...Array(14).fill(0)],
    [1, 1, 2, 0, ...Array(13).fill(0)],
  ]) {
    refused(() => parseBinary(Uint8Array.from(bytes).buffer, 's16le'));
  }
});

test('code files are those of the library', () => {
  const folder = mkdtempSync(join(tmpdir(), 'mimi-codes-'));
  try {
    const [npy, mimi, json] = [join(folder, 'a.npy'), join(folder, 'b.mimi'), join(folder, 'c.json')];
    writeFileSync(npy, toNpy(codes));
    writeFileSync(mimi, toMimi(codes));
    const script = `
import sys
from codec_core.codes_file import read_codes, write_codes
first, second = read_codes(sys.argv[1]), read_codes(sys.argv[2])
assert first.codes.shape == (3, 5) and (first.codes == second.codes).all()
write_codes(sys.argv[3], first)
for path in sys.argv[1:3]:
    data = open(path, "rb").read()
    write_codes(path, first)
    assert open(path, "rb").read() == data, path
`;
    execFileSync(MIMI.replace(/mimi$/, 'python'), ['-c', script, npy, mimi, json]);
    for (const path of [npy, mimi, json]) {
      assert.deepEqual(parseCodes(readFileSync(path)), codes, path);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('broken code files are refused', () => {
  const npy = toNpy(codes);
  const mimi = toMimi(codes);
  const broken = [
    npy.slice(0, 9),
    npy.slice(0, -1),
    npy.slice(0, 40),
    mimi.slice(0, 6),
    mimi.slice(0, -1),
    mimi.with(4, 0),
    new Uint8Array(),
  ];
  for (const file of [
    ...broken,
    new TextEncoder().encode('{"codes": [[1], [2, 3]]}'),
    new TextEncoder().encode('{"codes": [[-1]]}'),
  ]) {
    assert.throws(
      () => parseCodes(file),
      (error) => error instanceof MimiError && error.code === 'codes_file',
    );
  }
  assert.throws(() => toMimi({ ...codes, data: Uint16Array.of(40_000, 0, 0) }), /40000/);
});

test('the first levels of codes', () => {
  assert.deepEqual(
    [...firstLevels(codes, 1).data],
    [0, 3, 6, 9, 12].map((at) => codes.data[at]),
  );
  assert.equal(firstLevels(codes, 3), codes);
});

test('a WAV file has the samples as they are', () => {
  const file = toWav(Int16Array.of(1, -2, 32767), 16_000);
  assert.deepEqual([file.length, ...file.slice(44)], [50, 1, 0, 254, 255, 255, 127]);
  assert.deepEqual(parseWav(file), { sampleRateHz: 16_000, channels: 1, samples: Int16Array.of(1, -2, 32767) });
  for (const broken of [
    file.slice(0, 43),
    file.with(0, 0),
    file.with(12, 0),
    file.with(34, 24),
    file.with(20, 3),
    file.with(22, 0),
  ]) {
    assert.equal(parseWav(broken), null);
  }
  assert.deepEqual(parseWav(file.slice(0, -1))?.samples, Int16Array.of(1, -2), 'a file that ends early');
});

test('addresses of a service, wherever it is mounted', () => {
  assert.equal(streamUrl('http://host:8000').href, 'ws://host:8000/v1/stream');
  assert.equal(streamUrl('wss://host/mimi/v1/stream', 'a b').href, 'wss://host/mimi/v1/stream?token=a+b');
  assert.equal(serviceUrl('wss://host/mimi/v1/stream?x=1', 'v1/token').href, 'https://host/mimi/v1/token');
  assert.equal(serviceUrl('ws://host:1', 'readyz').href, 'http://host:1/readyz');
});

test('an outbox goes back to what a service holds, and no further than it remembers', () => {
  const outbox = new Outbox(2, { keeps: true, maxHeldBytes: 8 });
  const send = (count: number) => Array.from({ length: count }, () => (outbox.peek(100), outbox.advance()));
  outbox.append(Uint8Array.of(1, 2, 3, 4));
  outbox.appendControl('flush');
  outbox.append(Uint8Array.of(5, 6));
  send(3);
  outbox.rewind(0, 1, 0);
  assert.deepEqual([outbox.unsentBytes, outbox.heldBytes, outbox.peek(100)?.byte], [4, 2, 2]);
  send(1);
  assert.equal(outbox.peek(100)?.kind, 'flush');
  outbox.rewind(0, 2, 1);
  assert.deepEqual([outbox.peek(100)?.kind, outbox.peek(100)?.byte], ['chunk', 4]);
  send(1);
  outbox.release(0, 2);
  assert.equal(outbox.isWhole, false);
  assert.throws(() => outbox.rewind(0, 1, 0), /forgotten/);
  assert.throws(() => outbox.rewind(0, 9, 0), /behind the input/);
  outbox.appendControl('reset');
  outbox.append(Uint8Array.of(7, 8));
  send(2);
  outbox.rewind(1, 0, 0);
  assert.deepEqual([outbox.peek(100)?.epoch, outbox.unsentBytes], [1, 2]);
});
