/** The resampler against mathematics, and the jitter buffer against networks that a seed makes. */

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { JitterBuffer, Resampler, toInt16 } from '../src/index.ts';

const BLOCK = 128;

function tone(hz: number, rateHz: number, samples: number, phase = 0): Float32Array<ArrayBuffer> {
  return Float32Array.from({ length: samples }, (_, at) => 0.5 * Math.sin((2 * Math.PI * hz * at) / rateHz + phase));
}

function decibels(wanted: Float32Array, found: Float32Array, from: number, to: number): number {
  let [signal, noise] = [0, 0];
  for (let at = from; at < to; at += 1) {
    signal += (wanted[at] as number) ** 2;
    noise += ((wanted[at] as number) - (found[at] as number)) ** 2;
  }
  return 10 * Math.log10(signal / noise);
}

function inPieces(resampler: Resampler, samples: Float32Array, sizes: number[]): Float32Array {
  const parts: number[] = [];
  for (let at = 0, turn = 0; at < samples.length; turn += 1) {
    const size = sizes[turn % sizes.length] as number;
    parts.push(...resampler.push(samples.subarray(at, at + size)));
    at += size;
  }
  parts.push(...resampler.flush());
  return Float32Array.from(parts);
}

/** Numbers from 0 to 1 that a seed makes. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

for (const [fromHz, toHz] of [
  [48_000, 24_000],
  [44_100, 24_000],
  [24_000, 44_100],
  [24_000, 48_000],
  [96_000, 24_000],
  [16_000, 24_000],
  [22_050, 24_000],
] as const) {
  test(`${fromHz} Hz to ${toHz} Hz keeps what both can hold and nothing else`, () => {
    const seconds = 0.5;
    for (const hz of [100, 1_000, 0.88 * (Math.min(fromHz, toHz) / 2)]) {
      const output = inPieces(new Resampler(fromHz, toHz), tone(hz, fromHz, seconds * fromHz), [997]);
      assert.equal(output.length, Math.ceil(seconds * toHz));
      const loss = decibels(tone(hz, toHz, output.length), output, 0.05 * toHz, output.length - 0.05 * toHz);
      assert.ok(loss > 80, `${hz} Hz: ${loss} dB`);
    }
    if (fromHz > toHz) {
      const alias = inPieces(new Resampler(fromHz, toHz), tone(1.1 * (toHz / 2), fromHz, seconds * fromHz), [997]);
      const loudest = alias.slice(0.05 * toHz, -0.05 * toHz).reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      assert.ok(loudest < 0.5 * 10 ** (-75 / 20), `an alias of ${loudest}`);
    }
  });
}

test('pieces do not show in resampled sound', () => {
  const samples = tone(777, 44_100, 20_011);
  const whole = inPieces(new Resampler(44_100, 24_000), samples, [samples.length]);
  for (const sizes of [[1, 2, 3, 5, 7, 11, 997], [128], [4_410, 1]]) {
    assert.deepEqual(inPieces(new Resampler(44_100, 24_000), samples, sizes), whole);
  }
  assert.deepEqual(inPieces(new Resampler(24_000, 24_000), samples, [100]), samples);
});

test('floats become 16 bits as the library rounds them', () => {
  const halves = Float32Array.of(0.5 / 32768, 1.5 / 32768, 2.5 / 32768, -0.5 / 32768, -1.5 / 32768, -2.5 / 32768, 1, -1, 2, -2);
  assert.deepEqual(
    [...toInt16(halves)],
    [0, 2, 2, 0, -2, -2, 32767, -32768, 32767, -32768].map((value) => value + 0),
  );
});

interface Network {
  /** When each frame of 80 ms comes, in ms, never before the one before it. */
  arrivalsMs: number[];
  rateHz: number;
}

/** Play frames of a tone as they come; returns what was heard, and what the buffer said at the end. */
function listen(source: Float32Array, { arrivalsMs, rateHz }: Network, buffer: JitterBuffer): Float32Array {
  const resampler = new Resampler(24_000, rateHz);
  const heard: number[] = [];
  const output = new Float32Array(BLOCK);
  const latest = arrivalsMs.at(-1) ?? 0;
  for (let frame = 0, clock = 0; (clock * 1000) / rateHz < latest + 1_500; clock += BLOCK) {
    for (; frame < arrivalsMs.length && (arrivalsMs[frame] as number) <= (clock * 1000) / rateHz; frame += 1) {
      buffer.push([resampler.push(source.subarray(frame * 1920, (frame + 1) * 1920))]);
      if (frame === arrivalsMs.length - 1) {
        buffer.push([resampler.flush()]);
        buffer.end();
      }
    }
    buffer.pull([output]);
    heard.push(...output);
  }
  return Float32Array.from(heard);
}

/** The steepest step of a signal; a click is one that its own curve does not have. */
function steepest(samples: Float32Array): number {
  let most = 0;
  for (let at = 1; at < samples.length; at += 1) {
    most = Math.max(most, Math.abs((samples[at] as number) - (samples[at - 1] as number)));
  }
  return most;
}

const HZ = 220;
const FRAMES = 150;
/** A cosine begins with a step; a sine does not. */
const source = tone(HZ, 24_000, FRAMES * 1920);

function steady(): number[] {
  return Array.from({ length: FRAMES }, (_, frame) => 80 * (frame + 1));
}

/** One frame in five comes late, by up to three frames. */
function jittery(seed: number): number[] {
  const random = numbers(seed);
  let latest = 0;
  return steady().map((time) => (latest = Math.max(latest, time + (random() < 0.2 ? 240 * random() : 0))));
}

/** Nothing comes for half a second, three times. */
function stalled(): number[] {
  return steady().map((time) =>
    [2_000, 5_000, 8_000].reduce((late, from) => (time > from && time < from + 500 ? from + 500 : late), time),
  );
}

for (const rateHz of [24_000, 44_100, 48_000]) {
  // The tone begins and ends at once, which rings a little.
  const curve = 1.2 * 0.5 * 2 * Math.sin((Math.PI * HZ) / rateHz);
  // A fade of 5 ms and a cross-fade between two phases of the tone may be steeper than the tone, and are no click.
  const allowed = curve + (0.5 * Math.PI) / (2 * 0.005 * rateHz) + curve;

  test(`${rateHz} Hz: what comes in time is heard sample for sample`, () => {
    const buffer = new JitterBuffer({ sampleRateHz: rateHz });
    const heard = listen(source, { arrivalsMs: steady(), rateHz }, buffer);
    const wanted = inPieces(new Resampler(24_000, rateHz), source, [1920]);
    const start = heard.findIndex((value) => value !== 0) - wanted.findIndex((value) => value !== 0);
    assert.deepEqual(heard.slice(start, start + wanted.length), wanted);
    assert.deepEqual([buffer.report.underruns, buffer.report.skippedSamples, buffer.isDrained], [0, 0, true]);
    assert.ok(steepest(heard) <= curve, `${steepest(heard)} of ${curve}`);
  });

  for (const seed of [1, 2, 3, 4]) {
    test(`${rateHz} Hz: one frame in five is late, seed ${seed}: no clicks`, () => {
      const buffer = new JitterBuffer({ sampleRateHz: rateHz });
      const heard = listen(source, { arrivalsMs: jittery(seed), rateHz }, buffer);
      assert.ok(steepest(heard) <= allowed, `${steepest(heard)} of ${allowed}`);
      assert.ok(buffer.report.underruns <= 3, 'it finds its delay');
      assert.ok(buffer.isDrained);
    });
  }

  test(`${rateHz} Hz: stalls of half a second: no clicks, and the delay comes back`, () => {
    const buffer = new JitterBuffer({ sampleRateHz: rateHz });
    const heard = listen(source, { arrivalsMs: stalled(), rateHz }, buffer);
    assert.ok(buffer.report.underruns >= 1);
    assert.ok(steepest(heard) <= allowed, `${steepest(heard)} of ${allowed}`);
    const { playedSamples, skippedSamples } = buffer.report;
    const total = inPieces(new Resampler(24_000, rateHz), source, [1920]).length;
    assert.equal(playedSamples + skippedSamples, total, 'every sample was played or skipped');
  });
}

test('a fade would be heard without care: the detector sees a click', () => {
  const clicked = source.slice(0, 24_000);
  clicked.fill(0, 12_030, 12_300);
  assert.ok(steepest(clicked) > 3 * steepest(source));
});

test('what is too much for the buffer goes by cross-fades, from its oldest end', () => {
  const buffer = new JitterBuffer({ sampleRateHz: 24_000, capacityMs: 1_000 });
  const output = new Float32Array(BLOCK);
  const heard: number[] = [];
  buffer.push([source.subarray(0, 12_000)]);
  for (let block = 0; block < 20; block += 1) {
    buffer.pull([output]);
    heard.push(...output);
  }
  for (let frame = 0; frame < 20; frame += 1) {
    buffer.push([source.subarray(12_000 + 1920 * frame, 12_000 + 1920 * (frame + 1))]);
  }
  buffer.end();
  while (!buffer.isDrained) {
    buffer.pull([output]);
    heard.push(...output);
  }
  const end = 12_000 + 20 * 1920;
  assert.ok(buffer.report.skippedSamples > 0);
  assert.deepEqual(Float32Array.from(heard.slice(-20_000, -BLOCK)).slice(-9_000, -2_000), nearest(heard, end));
  assert.ok(steepest(Float32Array.from(heard).slice(0, -BLOCK)) <= 3 * steepest(source));
});

/** The part of the source that the end of what was heard must be. */
function nearest(heard: number[], end: number): Float32Array {
  const silence = heard.length - 1 - heard.findLastIndex((value) => value !== 0);
  const last = end - 1 - (source[end - 1] === 0 ? 1 : 0);
  const shift = heard.length - silence - 1;
  return source.slice(last - (shift - (heard.length - BLOCK - 9_000)), last - (shift - (heard.length - BLOCK - 2_000)));
}

test('two channels stay in step', () => {
  const buffer = new JitterBuffer({ sampleRateHz: 24_000, channels: 2 });
  const [left, right] = [new Float32Array(BLOCK), new Float32Array(BLOCK)];
  const negative = source.map((value) => -value);
  for (let frame = 0; frame < 10; frame += 1) {
    buffer.push([source.subarray(frame * 1920, (frame + 1) * 1920), negative.subarray(frame * 1920, (frame + 1) * 1920)]);
  }
  for (let block = 0; block < 200; block += 1) {
    buffer.pull([left, right]);
    left.forEach((value, at) => assert.equal(value + (right[at] as number), 0));
  }
});
