/** Where sound comes from: a microphone, or a file that is played. Either gives mono floats at 24 kHz. */

import { parseWav, Resampler } from 'mimi-client';

import { RATE_HZ } from './take.ts';
import { Refusal } from './words.ts';

const CHUNK_S = 0.02;
const MOST_FILE_BYTES = 256 * 2 ** 20;
const STOP_TIMEOUT_MS = 1_000;
/** What the resampler is for. */
const LEAST_RATE_HZ = 4_000;
const MOST_RATE_HZ = 192_000;

export interface Source {
  name: string;
  /** Begin; `end` is called where the sound ends by itself. */
  start(context: AudioContext, give: (samples: Float32Array) => void, end: (refusal: Refusal | null) => void): void;
  /** Time has passed on the audio device. */
  tick(atSamples: number, rateHz: number): void;
  /** Settles once the last sample is given; frees the microphone. Harmless when repeated. */
  stop(): Promise<void>;
}

/** Ask for the microphone. Throws a refusal that says what is wrong with it. */
export async function openMicrophone(): Promise<Source> {
  const stream = await askForMicrophone();
  let node: AudioWorkletNode | null = null;
  let stopped = () => {};
  let finish = () => {};
  let stopping: Promise<void> | null = null;
  return {
    name: 'microphone',
    start(context, give, end) {
      const resampler = new Resampler(context.sampleRate, RATE_HZ);
      const chunkSamples = Math.round(CHUNK_S * context.sampleRate);
      node = new AudioWorkletNode(context, 'mimi-capture', { processorOptions: { chunkSamples } });
      node.port.onmessage = ({ data }) => (data === 'stopped' ? stopped() : give(resampler.push(data)));
      finish = () => give(resampler.flush());
      for (const track of stream.getAudioTracks()) {
        track.onended = () => end(new Refusal('microphone_lost'));
      }
      context.createMediaStreamSource(stream).connect(node);
      // Its output is silence; some browsers run a node only when it leads somewhere.
      node.connect(context.destination);
    },
    tick() {},
    stop() {
      stopping ??= (async () => {
        await new Promise<void>((resolve) => {
          stopped = resolve;
          setTimeout(resolve, node ? STOP_TIMEOUT_MS : 0);
          node?.port.postMessage('stop');
        });
        finish();
        node?.disconnect();
        stream.getTracks().forEach((track) => track.stop());
      })();
      return stopping;
    },
  };
}

async function askForMicrophone(): Promise<MediaStream> {
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new Refusal('old_browser');
  }
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, noiseSuppression: false, autoGainControl: false, echoCancellation: false },
    });
  } catch (cause) {
    const { name, message } = cause as DOMException;
    const kinds: Record<string, string> = {
      NotAllowedError: 'microphone_denied',
      SecurityError: 'microphone_denied',
      NotFoundError: 'microphone_missing',
      NotReadableError: 'microphone_busy',
    };
    throw new Refusal(kinds[name] ?? 'microphone_failed', `${name}: ${message}`);
  }
}

/** Sound of a file, played in real time. */
export function playedSound(name: string, samples: Float32Array): Source {
  let begin: number | null = null;
  let given = 0;
  let give: (samples: Float32Array) => void = () => {};
  let end: (refusal: Refusal | null) => void = () => {};
  return {
    name,
    start(_context, takeSamples, ended) {
      give = takeSamples;
      end = ended;
    },
    tick(atSamples, rateHz) {
      begin ??= atSamples;
      const due = Math.min(samples.length, Math.floor(((atSamples - begin) * RATE_HZ) / rateHz));
      if (due > given) {
        give(samples.subarray(given, due));
        given = due;
        if (due === samples.length) {
          end(null);
        }
      }
    },
    async stop() {
      give = () => {};
      end = () => {};
    },
  };
}

/** Read a file of sound as mono at 24 kHz; a WAV file of 16 bits that has this rate keeps its samples, which a browser may round. */
export async function readSound(bytes: ArrayBuffer, name: string): Promise<Float32Array> {
  const exact = parseWav(new Uint8Array(bytes));
  if (exact && exact.samples.length > 0 && exact.sampleRateHz >= LEAST_RATE_HZ && exact.sampleRateHz <= MOST_RATE_HZ) {
    const { samples, channels, sampleRateHz } = exact;
    const mixed = Float32Array.from({ length: samples.length / channels }, (_, at) => {
      const together = samples.subarray(at * channels, (at + 1) * channels).reduce((sum, value) => sum + value, 0);
      return together / channels / 32768;
    });
    const resampler = new Resampler(sampleRateHz, RATE_HZ);
    return joined(resampler.push(mixed), resampler.flush());
  }
  try {
    const audio = await new OfflineAudioContext(1, 1, RATE_HZ).decodeAudioData(bytes);
    if (audio.length === 0) {
      throw new Error('it holds no sound');
    }
    const mixed = new Float32Array(audio.length);
    for (let channel = 0; channel < audio.numberOfChannels; channel += 1) {
      audio
        .getChannelData(channel)
        .forEach((value, at) => (mixed[at] = (mixed[at] as number) + value / audio.numberOfChannels));
    }
    return mixed;
  } catch (cause) {
    throw new Refusal('file_unreadable', `${name}: ${cause instanceof Error ? cause.message : cause}`);
  }
}

function joined(one: Float32Array, other: Float32Array): Float32Array {
  const both = new Float32Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

export async function readFile(file: File): Promise<ArrayBuffer> {
  if (file.size > MOST_FILE_BYTES) {
    throw new Refusal('file_too_big', `${file.name} has ${Math.round(file.size / 2 ** 20)} MiB.`);
  }
  try {
    return await file.arrayBuffer();
  } catch (cause) {
    throw new Refusal('file_unreadable', `${file.name}: ${cause instanceof Error ? cause.message : cause}`);
  }
}
