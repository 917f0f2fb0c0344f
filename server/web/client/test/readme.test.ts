/** The README, from an empty folder, as it is printed. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { parseCodes } from '../src/index.ts';
import { startService } from './service.ts';

const ADDRESS = 'http://127.0.0.1:8000';

test('the README works as printed', async () => {
  const text = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const service = await startService();
  const folder = mkdtempSync(join(tmpdir(), 'mimi-readme-'));
  const run = (command: string) => execFileSync('sh', ['-euc', command], { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
  try {
    const outputs: string[] = [];
    let scripts = 0;
    for (const [, kind, body = ''] of text.matchAll(/^```(sh|js)\n([^]*?)^```$/gm)) {
      const here = body.replaceAll(ADDRESS, service.url);
      if (kind === 'sh') {
        outputs.push(run(here));
      } else {
        // The file's name stands before the block; the last block is a part of one.
        const name = ['clip.js', 'stream.js', 'duplex.js', 'errors.js'][scripts] as string;
        assert.ok(name === 'errors.js' || text.includes(`\`${name}\``));
        writeFileSync(join(folder, name), here);
        scripts += 1;
        if (name !== 'clip.js') {
          outputs.push(run(`node ${name}`));
        }
      }
    }
    const [, clip, stream, duplex, errors] = outputs as [string, string, string, string, string];
    assert.equal(clip, '8 25 48000\n');
    assert.equal(parseCodes(readFileSync(join(folder, 'codes.npy'))).frames, 25);
    assert.equal(readFileSync(join(folder, 'back.wav')).length, 44 + 2 * 48_000);
    assert.match(stream, /^mimi-mini 4\n0 0 \[ \d+, \d+, \d+, \d+ \]\n/);
    assert.equal(stream.match(/^\d+ \d+ \[/gm)?.length, 13);
    assert.equal(duplex, '13 24000\n');
    assert.match(errors, /^setting levels: found 99, expected .* null\n$/);
  } finally {
    rmSync(folder, { recursive: true });
    await service.stop();
  }
});
