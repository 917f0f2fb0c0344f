// @ts-check
import { readWav } from './wav.js';
import { toInt16 } from './wire.js';
import { Refusal } from './words.js';
import { loadWorklet } from './worklets.js';

const CHUNK_S = 0.02;
/** What the server takes. */
const RATES_HZ = { least: 8_000, most: 96_000 };
const MOST_CHANNELS = 2;
const USUAL_RATE_HZ = 48_000;
const CODEC_RATE_HZ = 24_000;
const MOST_FILE_BYTES = 256 * 2 ** 20;
const OUTPUT_TIMEOUT_MS = 5_000;
const STOP_TIMEOUT_MS = 1_000;

/**
 * @typedef {object} Source where the audio comes from
 * @property {AudioContext} context its clock; the player plays by the same one
 * @property {number} channels of the samples it gives
 * @property {(give: (samples: Int16Array<ArrayBuffer>) => void, end: (refusal: Refusal | null) => void) => Promise<void>} start gives
 *   interleaved samples at the rate of the context; `end` is called where the audio ends by itself
 * @property {() => Promise<void>} stop settles once the last sample is given
 * @property {() => void} close frees the microphone and the audio device
 */

/**
 * Refuse where the browser has no audio worklets or no microphone to offer at all.
 * @throws {Refusal}
 */
export function checkBrowser() {
  if (!globalThis.isSecureContext) {
    throw new Refusal('insecure', `This page came from ${location.origin}.`);
  }
  if (!globalThis.AudioWorkletNode || !globalThis.WebSocket) {
    throw new Refusal('old_browser');
  }
}

/**
 * Ask for the microphone. Its rate is the hardware's: some browsers connect no microphone to a context of another rate.
 * @param {boolean} echo whether what is said will come back from the loudspeaker
 * @returns {Promise<Source>}
 * @throws {Refusal}
 */
export async function openMicrophone(echo) {
  checkBrowser();
  const stream = await askForMicrophone(echo);
  const stop = () => stream.getTracks().forEach((track) => track.stop());
  const { context, made: microphone } = await inContext(undefined, stop, async (open) => {
    await loadWorklet(open, 'capture');
    return open.createMediaStreamSource(stream);
  });
  const samples = Math.round(CHUNK_S * context.sampleRate);
  /** @type {AudioWorkletNode | undefined} */
  let node;
  /** @type {() => void} */
  let stopped = () => {};
  return {
    context,
    channels: 1,
    async start(give, end) {
      node = new AudioWorkletNode(context, 'mimi-capture', { processorOptions: { chunkSamples: samples } });
      node.port.onmessage = ({ data }) => (data === 'stopped' ? stopped() : give(data));
      stream.getAudioTracks()[0].onended = () => end(new Refusal('microphone_lost'));
      microphone.connect(node);
      // Its output is silence; some browsers run a node only when it leads somewhere.
      node.connect(context.destination);
      await running(context);
    },
    stop() {
      return new Promise((resolve) => {
        stopped = resolve;
        setTimeout(resolve, node ? STOP_TIMEOUT_MS : 0);
        node?.port.postMessage('stop');
      });
    },
    close() {
      stop();
      void context.close();
    },
  };
}

/**
 * Take the sound of a file. The context has the rate of a WAV file and otherwise the codec's, so that samples reach the server as
 * they are in the file.
 * @param {File | undefined} file
 * @returns {Promise<Source>}
 * @throws {Refusal}
 */
export async function openFile(file) {
  checkBrowser();
  if (!file) {
    throw new Refusal('no_file');
  }
  const bytes = await readFile(file);
  const wav = readWav(bytes);
  const streamable = wav !== null && wav.rateHz >= RATES_HZ.least && wav.rateHz <= RATES_HZ.most;
  const { context, made } = await inContext(streamable ? wav.rateHz : CODEC_RATE_HZ, undefined, async (open) => {
    await loadWorklet(open, 'pace');
    return streamable && wav.samples?.length && wav.channels <= MOST_CHANNELS
      ? { samples: wav.samples, channels: wav.channels }
      : decode(open, bytes, file.name);
  });
  const { samples, channels } = made;
  /** @type {AudioWorkletNode | undefined} */
  let node;
  return {
    context,
    channels,
    async start(give, end) {
      let given = 0;
      node = new AudioWorkletNode(context, 'mimi-pace', {
        numberOfInputs: 0,
        processorOptions: { chunkSamples: Math.round(CHUNK_S * context.sampleRate) },
      });
      node.port.onmessage = ({ data }) => {
        const due = Math.min(data * channels, samples.length);
        if (given < due) {
          give(samples.slice(given, due));
          given = due;
          due === samples.length && end(null);
        }
      };
      node.connect(context.destination);
      await running(context);
    },
    async stop() {
      if (node) {
        node.port.onmessage = null;
        node.port.postMessage('stop');
      }
    },
    close() {
      void context.close();
    },
  };
}

/** @param {boolean} echo */
async function askForMicrophone(echo) {
  if (!navigator.mediaDevices?.getUserMedia) {
    throw new Refusal('old_browser');
  }
  try {
    return await navigator.mediaDevices.getUserMedia({
      audio: { channelCount: 1, noiseSuppression: false, autoGainControl: false, echoCancellation: echo },
    });
  } catch (cause) {
    const { name, message } = /** @type {DOMException} */ (cause);
    const kinds = /** @type {Record<string, string>} */ ({
      NotAllowedError: 'microphone_denied',
      SecurityError: 'microphone_denied',
      NotFoundError: 'microphone_missing',
      NotReadableError: 'microphone_busy',
    });
    throw new Refusal(kinds[name] ?? 'microphone_failed', `${name}: ${message}`);
  }
}

/**
 * Open an audio context and make something in it; where that fails, nothing stays open.
 * @template Made
 * @param {number | undefined} sampleRate undefined, the hardware's
 * @param {(() => void) | undefined} undo is called where it fails
 * @param {(context: AudioContext) => Promise<Made>} make
 */
async function inContext(sampleRate, undo, make) {
  let context = new AudioContext({ sampleRate, latencyHint: 'interactive' });
  try {
    if (context.sampleRate > RATES_HZ.most || context.sampleRate < RATES_HZ.least) {
      await context.close();
      context = new AudioContext({ sampleRate: USUAL_RATE_HZ, latencyHint: 'interactive' });
    }
    return { context, made: await make(context) };
  } catch (cause) {
    void context.close();
    undo?.();
    throw cause instanceof Refusal ? cause : new Refusal('microphone_failed', String(cause));
  }
}

/**
 * Without a sound device a context may never start.
 * @param {AudioContext} context
 */
async function running(context) {
  const late = new Promise((resolve) => setTimeout(resolve, OUTPUT_TIMEOUT_MS, 'late'));
  if ((await Promise.race([context.resume(), late])) === 'late') {
    throw new Refusal('no_output');
  }
}

/** @param {File} file */
async function readFile(file) {
  if (file.size > MOST_FILE_BYTES) {
    throw new Refusal('file_too_big', `${file.name} has ${Math.round(file.size / 2 ** 20)} MiB.`);
  }
  try {
    return await file.arrayBuffer();
  } catch (cause) {
    throw new Refusal('file_unreadable', `${file.name}: ${cause instanceof Error ? cause.message : cause}`);
  }
}

/**
 * @param {AudioContext} context
 * @param {ArrayBuffer} bytes
 * @param {string} name
 */
async function decode(context, bytes, name) {
  try {
    const audio = await context.decodeAudioData(bytes);
    const channels = Math.min(audio.numberOfChannels, MOST_CHANNELS);
    const interleaved = new Float32Array(audio.length * channels);
    for (let channel = 0; channel < channels; channel += 1) {
      const from = audio.getChannelData(channel);
      from.forEach((value, at) => (interleaved[at * channels + channel] = value));
    }
    if (audio.length === 0) {
      throw new Error('it holds no sound');
    }
    return { samples: toInt16(interleaved), channels };
  } catch (cause) {
    throw new Refusal('file_unreadable', `${name}: ${cause instanceof Error ? cause.message : cause}`);
  }
}
