// @ts-check
import { Access } from './access.js';
import { element, say } from './dom.js';
import { askForFacts, bitRateInWords } from './facts.js';
import { showFigures } from './figures.js';
import { acceptDrops } from './file-choice.js';
import { KeyEntry } from './key-entry.js';
import { LiveStream } from './live-stream.js';
import { Meter } from './meter.js';
import { checkBrowser, openFile, openMicrophone } from './sources.js';
import { seconds } from './timeline.js';
import { View } from './view.js';
import { Refusal } from './words.js';

/** @import { ModelFacts } from './facts.js' */
/** @typedef {'loading' | 'idle' | 'starting' | 'live' | 'finishing'} State */

const BASE = document.baseURI;
const FIGURES_MS = 250;
/** What the button does. */
const BUTTON = { loading: 'Start', idle: 'Start', starting: 'Cancel', live: 'Stop', finishing: 'Stop now' };

const form = element('controls', HTMLFormElement);
const levels = element('levels', HTMLInputElement);
const fileInput = element('file', HTMLInputElement);
const go = element('go', HTMLButtonElement);
const meter = new Meter(element('meter', HTMLElement));
const view = new View(() => refreshFigures());
const access = new Access(BASE);
const keyEntry = new KeyEntry(access, () => void ask());

/** @type {ModelFacts | null} */
let model = null;
/** @type {LiveStream | null} */
let stream = null;
/** @type {State} */
let state = 'loading';
let figuresAtMs = 0;

/**
 * @param {State} next
 * @param {string} status
 */
function enter(next, status) {
  state = next;
  form.querySelectorAll('fieldset').forEach((fieldset) => (fieldset.disabled = next !== 'idle'));
  go.disabled = next === 'loading' || (next === 'starting' && !stream);
  go.classList.toggle('live', next === 'live' || next === 'finishing');
  go.textContent = BUTTON[next];
  say('status', status);
}

/** @param {Refusal | null} refusal */
function showRefusal(refusal) {
  const where = element('refusal', HTMLElement);
  where.dataset.code = refusal?.code ?? '';
  keyEntry.show(refusal);
  where.replaceChildren(
    ...[refusal?.headline, refusal?.advice, refusal?.detail].flatMap((text, index) => {
      const paragraph = document.createElement('p');
      const inner = document.createElement(['strong', 'span', 'small'][index]);
      inner.textContent = text ?? '';
      paragraph.append(inner);
      return text ? [paragraph] : [];
    }),
  );
}

/** @param {string} name @returns {string} the chosen radio button's value */
function chosen(name) {
  return form.querySelector(`[name=${name}]:checked`)?.getAttribute('value') ?? '';
}

/** @param {ModelFacts} facts */
async function start(facts) {
  const echo = chosen('mode') === 'echo';
  const microphone = chosen('source') === 'microphone';
  stream = null;
  showRefusal(null);
  enter('starting', microphone ? 'Waiting for the microphone …' : 'Reading the file …');
  try {
    const token = await access.streamToken();
    const source = microphone ? await openMicrophone(echo) : await openFile(fileInput.files?.[0]);
    const settings = { base: BASE, access, token, echo, levels: levels.valueAsNumber, frameRateHz: facts.frame_rate_hz };
    stream = new LiveStream(source, settings, {
      input: takeInput,
      output: () => view.refresh(),
      notice: (text) => say('status', `Streaming. Note: ${text}.`),
      finishing: () => enter('finishing', 'The sound has ended; waiting for the last answers …'),
      end: ended,
    });
    enter('starting', 'Connecting …');
    view.use(stream, stream.codes.levels, facts);
    await stream.run();
  } catch (cause) {
    ended(cause instanceof Refusal ? cause : new Refusal('page_failed', String(cause)));
  }
}

/** @param {Int16Array} samples */
function takeInput(samples) {
  if (state === 'starting') {
    enter('live', `Streaming at ${stream?.rateHz} Hz.`);
  }
  meter.push(samples, performance.now());
  view.refresh();
}

/** @param {Refusal | null} refusal */
function ended(refusal) {
  const frames = stream?.codes.end ?? 0;
  showRefusal(refusal);
  enter('idle', refusal ? `Stopped after ${seconds(frames)}.` : `Done: ${frames} frames, ${seconds(frames)}.`);
  meter.clear();
  figuresAtMs = 0;
  view.draw();
}

function refreshFigures() {
  const nowMs = performance.now();
  if (stream && model && nowMs - figuresAtMs >= FIGURES_MS) {
    figuresAtMs = nowMs;
    showFigures(stream, model);
  }
}

function press() {
  if (state === 'idle' && model) {
    void start(model);
  } else if (stream && state !== 'idle') {
    enter('finishing', 'Stopping; waiting for the last answers …');
    void stream.stop();
  }
}

/** A choice changed: show what it means; what was streamed before is no longer of these settings. */
function showChoice() {
  if (state !== 'idle' || !model) {
    return;
  }
  say('levels-value', levels.value);
  say('bit-rate', bitRateInWords(model, levels.valueAsNumber));
  view.echo = chosen('mode') === 'echo';
  document.querySelectorAll('.echo-only').forEach((figure) => figure.toggleAttribute('hidden', !view.echo));
  stream = null;
  view.use(null, levels.valueAsNumber, model);
  showExamples();
}

function showExamples() {
  const stem = new URL('v1', BASE).href;
  say('stream-example', `${stem.replace(/^http/, 'ws')}/stream?mode=encode&levels=${levels.value}`);
  say(
    'clip-example',
    `curl --data-binary @speech.wav -H 'Content-Type: audio/wav' ${stem}/encode -o codes.json\n` +
      `curl --data-binary @codes.json -H 'Content-Type: application/json' ${stem}/decode -o back.wav`,
  );
}

function listen() {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    press();
  });
  form.addEventListener('input', showChoice);
  fileInput.addEventListener('change', () => {
    const [file] = fileInput.files ?? [];
    element('source-file', HTMLInputElement).checked = true;
    say('status', file ? `${file.name} is chosen.` : 'No file is chosen.');
  });
  acceptDrops(fileInput);
}

/** Ask what the service runs; without that nothing can be started. */
async function ask() {
  if (state !== 'loading' && state !== 'idle') {
    return;
  }
  try {
    const isFirst = model === null;
    model = await askForFacts(access);
    levels.max = String(model.levels);
    levels.value = isFirst ? String(model.default_levels) : levels.value;
    say('model', `${model.name} · ${model.weight_class}, ${model.numerics} numerics · up to ${model.levels} levels`);
    checkBrowser();
    showRefusal(null);
    enter('idle', 'Ready.');
  } catch (cause) {
    const refusal = cause instanceof Refusal ? cause : new Refusal('page_failed', String(cause));
    enter(
      model ? 'idle' : 'loading',
      model ? 'Not ready.' : refusal.code === 'unauthorized' ? 'Waiting for a key.' : 'Reload this page to try again.',
    );
    showRefusal(refusal);
  }
  showChoice();
}

/** For a look inside, from the browser's console or a test; changes nothing. */
Object.defineProperty(globalThis, 'mimi', {
  value: Object.freeze({
    get state() {
      return state;
    },
    /** The code of the refusal that is shown; empty where none is. */
    get refusal() {
      return element('refusal', HTMLElement).dataset.code ?? '';
    },
    /** Codes by frame. @returns {number[][]} */
    get codes() {
      const { first = 0, end = 0 } = stream?.codes ?? {};
      return Array.from({ length: end - first }, (_, at) => [...(stream?.codes.frame(first + at) ?? [])]);
    },
    /** What plays, as a node of the audio graph. */
    get player() {
      return stream?.player?.node ?? null;
    },
    get playerReport() {
      return stream?.player?.report ?? null;
    },
    get answerTimes() {
      return stream?.times.summary ?? null;
    },
  }),
});

listen();
void ask();
