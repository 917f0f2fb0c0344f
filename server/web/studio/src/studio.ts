/** The page's states, and what leads from one to another. */

import { parseCodes, type Notice } from 'mimi-client';

import { restAudio, startAudio, type Listen } from './audio.ts';
import { Decoded } from './decoded.ts';
import {
  offerPlaying,
  offerTake,
  placeS,
  showClock,
  showLevels,
  showPlaying,
  showState,
  showStatus,
  type State,
} from './controls.ts';
import { choose, chosen, element, say } from './dom.ts';
import { showFigures } from './figures.ts';
import { LiveTake } from './live.ts';
import { Meter } from './meter.ts';
import { offerPairs, showPair, type Pair } from './pairs.ts';
import { RefusalBox } from './refusal-box.ts';
import { save, type Form } from './save.ts';
import type { ModelFacts, Service } from './service.ts';
import { openMicrophone, playedSound, readFile, readSound, type Source } from './sources.ts';
import { FRAME_S, MOST_FRAMES, RATE_HZ, Sound, Take } from './take.ts';
import { TakePlayer } from './take-player.ts';
import { seconds } from './timeline.ts';
import { View } from './view.ts';
import { Refusal, refusalOf } from './words.ts';

const FIGURES_MS = 250;
const CODES_FILE = /\.(npy|mimi|json)$/i;

export class Studio {
  /** Called with a key that was entered. */
  askAgain: (key: string) => void = () => {};
  #service: Service;
  #model: ModelFacts | null = null;
  #state: State = 'loading';
  #levels = 1;
  #take: Take | null = null;
  #live: LiveTake | null = null;
  #decoded: Decoded | null = null;
  #isCancelled = false;
  /** Whether the present take has codes and, so far, no sound of them. */
  #isUnheard = false;
  #figuresAtMs = 0;
  #box = new RefusalBox((key) => this.askAgain(key));
  #meter = new Meter(element('meter', HTMLElement), element('meter-words', HTMLElement));
  #view = new View(() => this.#showFigures());
  #player = new TakePlayer(() => this.#paused());

  constructor(service: Service) {
    this.#service = service;
  }

  /** A model is there: things can be started. */
  use(model: ModelFacts): void {
    const isFirst = this.#model === null;
    this.#model = model;
    if (isFirst) {
      element('levels', HTMLInputElement).max = String(model.levels);
      say('scale-most', String(model.codebook_entries - 1));
      this.setLevels(model.default_levels);
      this.#enter('empty', '');
    }
  }

  refuse(cause: unknown): void {
    this.#box.show(cause === null ? null : refusalOf(cause));
  }

  speak(): void {
    void this.#record('off', 'Waiting for the microphone …', () => openMicrophone());
  }

  playExample(): void {
    void this.#record('codec', 'Fetching the example …', async () =>
      playedSound('example', await readSound(await this.#service.example(), 'example')),
    );
  }

  /** A file was chosen or dropped: sound is played into the codec, codes are decoded. */
  open(file: File): void {
    const name = file.name.replace(/\.[^.]*$/, '');
    if (CODES_FILE.test(file.name)) {
      void this.#openCodes(file, name);
    } else {
      void this.#record('codec', 'Reading the file …', async () =>
        playedSound(name, await readSound(await readFile(file), file.name)),
      );
    }
  }

  stop(): void {
    this.#isCancelled = true;
    if (this.#live) {
      this.#enter('finishing', 'Stopping; waiting for the last answers …');
      this.#live.stop();
    }
  }

  playOrPause(): void {
    if (this.#player.isPlaying) {
      this.#player.stop();
      this.#paused();
    } else {
      void this.#play(placeS());
    }
  }

  /** Play the take from its beginning: what went in, or so many of its levels. */
  async hear(pair: Pair): Promise<void> {
    if (this.#state !== 'take') {
      return;
    }
    choose('listen', pair === 'input' ? 'input' : 'codec');
    if (pair !== 'input' && pair !== this.#levels) {
      this.setLevels(pair);
      await this.#decode();
      if (pair !== this.#levels) {
        return;
      }
    }
    this.#showPair();
    await this.#play(0);
  }

  seek(toS: number): void {
    if (this.#player.isPlaying) {
      void this.#play(toS);
    } else {
      this.#view.playhead = toS / FRAME_S;
      showClock(toS);
    }
  }

  listen(to: Listen): void {
    this.#live?.listen(to);
    this.#player.listen(to);
    this.#showPair();
  }

  #showPair(): void {
    showPair(chosen('listen') === 'input' ? 'input' : this.#levels);
  }

  setLevels(levels: number): void {
    this.#levels = levels;
    if (!this.#model) {
      return;
    }
    showLevels(levels, this.#model);
    this.#showPair();
    this.#view.map.heard = levels;
    this.#view.refresh();
    void this.#live?.monitor.change(levels);
    if (this.#state === 'take') {
      void this.#decode();
    }
  }

  changeLanes(): void {
    const isSpectrogram = chosen('lanes') === 'spectrogram';
    element('stage', HTMLElement).classList.toggle('spectrograms', isSpectrogram);
    this.#view.draw();
  }

  save(form: Form): void {
    if (this.#take) {
      save(this.#take, form, this.#levels);
    }
  }

  /** What scripts may see. */
  get inside(): object {
    const studio = this;
    return Object.freeze({
      get state() {
        return studio.#state;
      },
      get refusal() {
        return studio.#box.code;
      },
      /** Codes by frame. */
      get codes() {
        const take = studio.#take;
        return Array.from({ length: take?.frames ?? 0 }, (_, frame) => [...(take?.frame(frame) ?? [])]);
      },
      get input() {
        return [...(studio.#take?.input?.view() ?? [])];
      },
      get output() {
        return [...(studio.#take?.output.view() ?? [])];
      },
      get playerReport() {
        return studio.#live?.player?.report ?? null;
      },
      get resumes() {
        return studio.#live?.stream?.stats.resumes ?? 0;
      },
      get isPlaying() {
        return studio.#player.isPlaying;
      },
    });
  }

  async #record(listen: Listen, words: string, open: () => Promise<Source>): Promise<void> {
    const model = this.#model;
    if (!model || (this.#state !== 'empty' && this.#state !== 'take')) {
      return;
    }
    this.#begin(listen, words);
    let source: Source | null = null;
    let refusal: Refusal | null = null;
    try {
      await startAudio();
      source = await open();
      if (!this.#isCancelled) {
        this.#setTake(new Take(source.name, model.levels), model);
        this.#live = this.#liveTake(source, listen);
        await this.#live.run();
      }
    } catch (cause) {
      refusal = refusalOf(cause);
    }
    void source?.stop();
    this.#end(refusal);
  }

  #begin(listen: Listen, words: string): void {
    this.#player.stop();
    this.#isCancelled = this.#isUnheard = false;
    this.#live = null;
    this.refuse(null);
    choose('listen', listen);
    this.#enter('starting', words);
  }

  #liveTake(source: Source, listen: Listen): LiveTake {
    const take = this.#take as Take;
    return new LiveTake(this.#service, source, take, this.#levels, listen, {
      changed: () => this.#view.refresh(),
      input: (samples) => {
        if (this.#state === 'starting') {
          this.#enter(
            'live',
            listen === 'off' ? 'Listening to you. With headphones on, choose Codec to hear it live.' : 'Playing.',
          );
        }
        this.#meter.push(samples, performance.now());
        showClock((take.input?.length ?? 0) / RATE_HZ);
        this.#view.refresh();
      },
      notice: (notice) => this.#tell(notice),
      finishing: () => this.#enter('finishing', 'The sound has ended; waiting for the last answers …'),
      unheard: (refusal) => {
        this.#isUnheard = true;
        this.#box.show(refusal);
      },
    });
  }

  /** A recording is over, well or badly; what came is kept. */
  #end(refusal: Refusal | null): void {
    const take = this.#take;
    this.#meter.clear();
    if (refusal) {
      this.#box.show(refusal);
    }
    if (!take || (take.frames === 0 && (take.input?.length ?? 0) === 0)) {
      this.#take = null;
      this.#enter(this.#model ? 'empty' : 'loading', '');
      return;
    }
    if (chosen('listen') === 'off') {
      choose('listen', 'codec');
    }
    this.#enter('take', `${refusal ? 'Stopped after' : 'Done:'} ${take.frames} frames, ${seconds(take.frames)}.`);
    if (take.frames > 0 && this.#live && !this.#live.monitor.isMixed && take.output.frames >= take.frames) {
      this.#decoded?.keep(this.#live.monitor.levels, take.output);
    }
    void this.#decode();
    this.#ready(take);
  }

  async #openCodes(file: File, name: string): Promise<void> {
    const model = this.#model;
    if (!model || (this.#state !== 'empty' && this.#state !== 'take')) {
      return;
    }
    this.#begin('codec', 'Reading the codes …');
    try {
      const codes = parseCodes(new Uint8Array(await readFile(file)), file.name);
      if (codes.frames > MOST_FRAMES) {
        throw new Refusal('file_too_big', `${file.name} has ${codes.frames} frames.`);
      }
      const take = Take.ofCodes(name, codes);
      take.output = Sound.of(await this.#service.decode(take.codes(take.levels), new AbortController().signal));
      this.#setTake(take, model);
      this.#decoded?.keep(take.levels, take.output);
      this.setLevels(take.levels);
      this.#enter('take', `${file.name}: ${take.frames} frames, ${seconds(take.frames)}.`);
      this.#ready(take);
    } catch (cause) {
      this.#box.show(refusalOf(cause));
      this.#enter(this.#take ? 'take' : 'empty', '');
    }
  }

  #setTake(take: Take, model: ModelFacts): void {
    this.#take = take;
    this.#decoded = new Decoded(this.#service, take);
    this.#figuresAtMs = 0;
    offerTake(take);
    this.setLevels(Math.min(this.#levels, take.levels));
    showState(this.#state, element('status', HTMLElement).textContent ?? '', take);
    this.#view.use(take, model.codebook_entries);
  }

  /** The take can be played. */
  #ready(take: Take): void {
    offerPlaying(take);
    this.#figuresAtMs = 0;
    this.#view.draw();
  }

  /** Have the take's sound at the levels that are chosen. */
  async #decode(): Promise<void> {
    const [take, decoded] = [this.#take, this.#decoded];
    if (!take || !decoded || take.frames === 0) {
      return;
    }
    try {
      const sound = await decoded.at(this.#levels);
      if (sound && take === this.#take && take.output !== sound) {
        take.output = sound;
        this.#player.replace(sound);
        if (this.#isUnheard) {
          this.#isUnheard = false;
          this.refuse(null);
        }
        this.#view.draw();
      }
    } catch (cause) {
      this.refuse(cause);
    }
  }

  async #play(fromS: number): Promise<void> {
    const take = this.#take;
    if (!take || this.#state !== 'take') {
      return;
    }
    try {
      const to = chosen('listen') === 'input' && take.input ? 'input' : 'codec';
      choose('listen', to);
      await this.#player.play(take.input, take.output, fromS, to);
      showPlaying(true);
      this.#follow();
    } catch (cause) {
      this.refuse(cause);
    }
  }

  /** Show where it is while it plays. */
  #follow(): void {
    if (!this.#player.isPlaying) {
      return;
    }
    element('seek', HTMLInputElement).value = String(this.#player.atS);
    this.#view.playhead = this.#player.atS / FRAME_S;
    showClock(this.#player.atS);
    requestAnimationFrame(() => this.#follow());
  }

  #paused(): void {
    showPlaying(false);
    this.#view.draw();
  }

  #tell({ kind, text }: Notice): void {
    const words = {
      lost: 'The connection is lost. Your sound is kept; trying again …',
      resumed: 'Connected again; nothing is lost.',
      goaway: `Note: ${text}.`,
      warning: `Note: ${text}.`,
    };
    showStatus(words[kind], kind === 'lost');
  }

  #enter(next: State, status: string): void {
    this.#state = next;
    this.#view.isDone = next === 'take';
    showState(next, status, this.#take);
    offerPairs(next === 'take' ? this.#take : null);
    if (next === 'take' || next === 'empty') {
      restAudio();
    }
  }

  #showFigures(): void {
    const nowMs = performance.now();
    if (this.#take && this.#model && nowMs - this.#figuresAtMs >= FIGURES_MS) {
      this.#figuresAtMs = nowMs;
      showFigures(this.#take, this.#live, this.#model, this.#levels, this.#state === 'live');
    }
  }
}
