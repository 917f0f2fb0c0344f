/** Streams against a real service: codes and sound, lost lines, restarts, refusals, bounds. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { decode, duplex, encode, MimiError, MimiStream, requestToken, type Frame, type Notice } from '../src/index.ts';
import { Cutter, Service, speechLike, startService, storeFolder } from './service.ts';

const LEVELS = 8;
const SECRET = 'a secret of the tests, long enough for the service';
const sound = speechLike(24_000 * 4 + 777);
let service: Service;
let expected: Uint16Array;

before(async () => {
  service = await startService();
  expected = (await encode(service.url, sound, { levels: LEVELS })).data;
});
after(() => service.stop());

async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (cause) {
    assert.ok(cause instanceof MimiError, String(cause));
    return cause.code;
  }
  throw new Error('not refused');
}

/** Codes of the first levels of whole frames, as the REST interface has them. */
async function codesByRest(): Promise<number[][]> {
  const query = 'format=s16le&sample_rate=24000';
  const answer = await fetch(`${service.url}/v1/encode?levels=${LEVELS}&${query}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/octet-stream', Accept: 'application/json' },
    body: sound,
  });
  return ((await answer.json()) as { codes: number[][] }).codes;
}

function joined(frames: Frame[]): Uint16Array {
  return Uint16Array.from(frames.flatMap(({ codes }) => [...(codes ?? [])]));
}

describe('a stream', { concurrency: 4 }, () => {
  test('codes are those of the other interface', async () => {
    const rows = await codesByRest();
    const frames = rows[0]?.length ?? 0;
    assert.equal(frames, Math.ceil(sound.length / 1920));
    assert.deepEqual(
      [...expected],
      Array.from({ length: frames * LEVELS }, (_, at) => rows[at % LEVELS]?.[Math.floor(at / LEVELS)]),
    );
  });

  test('decoding and echo give the same sound, as long as what was sent', async () => {
    const codes = await encode(service.url, sound, { levels: LEVELS });
    const [back, echo] = await Promise.all([
      decode(service.url, codes),
      duplex(service.url, sound, { levels: LEVELS, sampleFormat: 'f32le' }),
    ]);
    assert.equal(back.length, sound.length);
    assert.deepEqual(echo.codes.data, codes.data);
    assert.deepEqual(echo.pcm, back);
  });

  test('frames come one by one, in order, with their places and latencies', async () => {
    const stream = await MimiStream.connect(service.url, { levels: LEVELS });
    const frames: Frame[] = [];
    for await (const frame of stream.run([sound.subarray(0, 1), sound.subarray(1, 40_001), sound.subarray(40_001)])) {
      frames.push(frame);
    }
    assert.deepEqual(joined(frames), expected);
    frames.forEach(({ sequence, position, latencyMs }, index) => {
      assert.deepEqual([sequence, position], [index, index * 1920]);
      assert.ok(latencyMs !== null && latencyMs >= 0);
    });
    const { answeredFrames, sentFrames, waitingFrames, unsentMs } = stream.stats;
    assert.deepEqual([answeredFrames, sentFrames, waitingFrames, unsentMs], [frames.length, frames.length, 0, 0]);
    await stream.reset();
    const again: Frame[] = [];
    for await (const frame of stream.run([sound.subarray(0, 9_600)])) {
      again.push(frame);
    }
    assert.deepEqual(joined(again), expected.slice(0, 5 * LEVELS), 'a reset stream is as new');
    await stream.close();
    await stream.close();
    assert.equal(await codeOf(stream.send(sound)), 'session_closed');
    assert.equal(await stream.receive(), null);
  });

  test('a stream goes on over lines that are cut', async () => {
    const cutter = await Cutter.open(service.port);
    const notices: Notice[] = [];
    const stream = await MimiStream.connect(
      cutter.url,
      { levels: LEVELS },
      { notify: (notice) => notices.push(notice), paced: true },
    );
    const frames: Frame[] = [];
    const places = [5, 23, 24, 41];
    for await (const frame of stream.run([sound])) {
      frames.push(frame);
      if (places.includes(frame.sequence)) {
        cutter.cut();
      }
    }
    await stream.close();
    await cutter.close();
    assert.deepEqual(joined(frames), expected);
    assert.equal(stream.stats.resumes, places.length);
    assert.deepEqual(
      notices.map(({ kind }) => kind),
      places.flatMap(() => ['lost', 'resumed']),
    );
  });

  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    test(`a stream goes on when its service is restarted, after ${signal}`, async () => {
      const environment = { MIMI_SECRET: SECRET, MIMI_SNAPSHOT_STORE: storeFolder() };
      const options = ['--drain-timeout-ms', '100', '--checkpoint-interval-ms', '200'];
      let replica = await startService(options, environment);
      const cutter = await Cutter.open(replica.port);
      const stream = await MimiStream.connect(cutter.url, { levels: LEVELS }, { paced: true });
      const frames: Frame[] = [];
      for await (const frame of stream.run([sound])) {
        frames.push(frame);
        if (frame.sequence === 20) {
          await replica.stop(signal);
          replica = await startService(options, environment);
          cutter.port = replica.port;
        }
      }
      await stream.close();
      await Promise.all([cutter.close(), replica.stop()]);
      assert.deepEqual(joined(frames), expected);
      assert.ok(stream.stats.resumes >= 1);
    });
  }

  test('a service that forgot everything is sent everything again', async () => {
    let replica = await startService();
    const cutter = await Cutter.open(replica.port);
    const stream = await MimiStream.connect(cutter.url, { levels: LEVELS }, { paced: true });
    const frames: Frame[] = [];
    for await (const frame of stream.run([sound])) {
      frames.push(frame);
      if (frame.sequence === 20) {
        await replica.stop('SIGKILL');
        replica = await startService();
        cutter.port = replica.port;
      }
    }
    await stream.close();
    await Promise.all([cutter.close(), replica.stop()]);
    assert.deepEqual(joined(frames), expected);
    assert.ok(stream.stats.repeatedFrames >= 20);
  });

  test('who does not read is not flooded, and who reads again has lost nothing', async () => {
    const stream = await MimiStream.connect(
      service.url,
      { levels: LEVELS },
      { maxReceivedFrames: 6, maxUnsentBytes: 4 * 3840 },
    );
    let sent = 0;
    const sending = (async () => {
      for (let at = 0; at < sound.length; at += 1920) {
        await stream.send(sound.subarray(at, at + 1920));
        sent += 1;
      }
      await stream.flush();
    })();
    await new Promise((resolve) => setTimeout(resolve, 500));
    const { waitingFrames } = stream.stats;
    assert.ok(waitingFrames <= 6 + 8, `${waitingFrames} frames wait`);
    assert.ok(sent < 30, `${sent} frames of input were taken`);
    const frames: Frame[] = [];
    while (frames.length < expected.length / LEVELS) {
      frames.push((await stream.receive()) as Frame);
    }
    await sending;
    await stream.close();
    assert.deepEqual(joined(frames), expected);
  });

  test('refusals have the names of the one table', async () => {
    assert.equal(await codeOf(MimiStream.connect(service.url, { levels: 99 })), 'setting');
    assert.equal(await codeOf(MimiStream.connect(service.url, { mode: 'sing' as 'echo' })), 'setting');
    assert.equal(await codeOf(MimiStream.connect('ftp://nowhere')), 'setting');
    assert.equal(await codeOf(MimiStream.connect('http://127.0.0.1:1')), 'unavailable');
    const stream = await MimiStream.connect(service.url, { mode: 'decode', levels: 2 });
    assert.equal(await codeOf(stream.send(new Uint16Array(3))), 'input_shape');
    assert.equal(await codeOf(stream.send(new Float32Array(2))), 'input_type');
    assert.equal(await codeOf(stream.send(Uint16Array.of(1, 9_999))), 'code_range');
    await stream.send(Uint8Array.of(1, 0, 255, 255));
    assert.equal(await codeOf(stream.flush()), 'code_range');
    assert.equal(await codeOf(stream.receive()), 'code_range');
    await stream.close();
    const input = await MimiStream.connect(service.url);
    assert.equal(await codeOf(input.send(Float32Array.of(0, NaN))), 'non_finite_input');
    await input.close();
  });

  test('a full service says so, and a client may wait for a place', async () => {
    const small = await startService(['--max-sessions', '1']);
    const first = await MimiStream.connect(small.url);
    assert.equal(await codeOf(MimiStream.connect(small.url)), 'capacity');
    const waiting = MimiStream.connect(small.url, {}, { waitForPlaceMs: 20_000 });
    await first.close();
    await (await waiting).close();
    await small.stop();
  });

  test('a key becomes a token at every connection', async () => {
    const locked = await startService([], { MIMI_API_KEYS: 'Schlüssel' });
    assert.equal(await codeOf(MimiStream.connect(locked.url)), 'unauthorized');
    assert.equal(await codeOf(MimiStream.connect(locked.url, {}, { key: 'wrong' })), 'unauthorized');
    const cutter = await Cutter.open(locked.port);
    const stream = await MimiStream.connect(cutter.url, { levels: LEVELS }, { key: 'Schlüssel' });
    await stream.send(sound.subarray(0, 1920));
    assert.equal((await stream.receive())?.sequence, 0);
    cutter.cut();
    await stream.send(sound.subarray(1920, 3840));
    assert.deepEqual((await stream.receive())?.codes, expected.slice(LEVELS, 2 * LEVELS));
    await stream.close();
    const token = await requestToken(locked.url, 'Schlüssel');
    await (await MimiStream.connect(locked.url, {}, { token })).close();
    await Promise.all([cutter.close(), locked.stop()]);
  });

  test('a silent line is given up and made again', async () => {
    const silent = await startService();
    const cutter = await Cutter.open(silent.port);
    const stream = await MimiStream.connect(cutter.url, { levels: LEVELS }, { pingIntervalMs: 500, pingTimeoutMs: 500 });
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    assert.equal(stream.stats.resumes, 0, 'a service that answers pings is there');
    silent.process.kill('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 3_500));
    silent.process.kill('SIGCONT');
    const frames: Frame[] = [];
    for await (const frame of stream.run([sound.subarray(0, 19_200)])) {
      frames.push(frame);
    }
    await stream.close();
    await Promise.all([cutter.close(), silent.stop()]);
    assert.ok(stream.stats.resumes >= 1);
    assert.deepEqual(joined(frames), expected.slice(0, 10 * LEVELS));
  });
});
