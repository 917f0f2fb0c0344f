/** The lanes: what was said, its codes, what became of it, and how long it took; on one time axis. */

import { CodeMap } from './code-map.ts';
import { chosen, element, say } from './dom.ts';
import { beginDrawing, heatColour, readTheme, type Theme } from './drawing.ts';
import { drawLatencies, drawWaveform, SpectrumLane } from './lanes.ts';
import { Spectrum } from './spectrum.ts';
import type { Sound, Take } from './take.ts';
import { Timeline } from './timeline.ts';

/** Between two pictures: fifteen a second, for every frame comes with a new one; where little motion is wanted, one a second. */
const MOVING_MS = 66;
const STILL_MS = 1_000;
const THUMB_PX = 16;

export class View {
  readonly map: CodeMap;
  #timeline = new Timeline();
  #take: Take | null = null;
  #lanes = ['input', 'output'].map((id) => ({ canvas: element(id, HTMLCanvasElement), painter: new SpectrumLane() }));
  #latency = element('latency', HTMLCanvasElement);
  #scale = element('scale', HTMLCanvasElement);
  #spectra = new Map<Sound, Spectrum>();
  #playhead: number | null = null;
  #theme: Theme = readTheme();
  #isAsked = false;
  #drawnAtMs = 0;
  #stillness = matchMedia('(prefers-reduced-motion: reduce)');
  #drawn: () => void;

  /** @param drawn is called after the lanes were drawn */
  constructor(drawn: () => void) {
    this.#drawn = drawn;
    this.map = new CodeMap(
      element('map', HTMLCanvasElement),
      this.#timeline,
      (text) => say('cell', text),
      () => this.draw(),
    );
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.#theme = readTheme();
      this.draw();
    });
    new ResizeObserver(() => this.draw()).observe(element('map', HTMLCanvasElement));
  }

  use(take: Take, entries: number): void {
    this.#take = take;
    this.#spectra.clear();
    this.#playhead = null;
    this.#timeline.follow();
    this.map.use(take, entries);
    this.draw();
  }

  /** Whether the take is done: then it is shown as large as it fits. */
  set isDone(done: boolean) {
    this.#timeline.isFitted = done;
    this.#timeline.follow();
  }

  /** Where the take is being played, in frames; `null` where it is not. */
  set playhead(frame: number | null) {
    this.#playhead = frame;
    if (frame !== null) {
      this.#timeline.show(frame);
    }
    this.refresh();
  }

  /** Draw soon, and not more often than is worth it. */
  refresh(): void {
    if (this.#isAsked) {
      return;
    }
    const sinceMs = performance.now() - this.#drawnAtMs;
    const waitMs = (this.#stillness.matches ? STILL_MS : MOVING_MS) - sinceMs;
    this.#isAsked = true;
    setTimeout(() => requestAnimationFrame(() => this.draw()), Math.max(0, waitMs));
  }

  draw(): void {
    this.#isAsked = false;
    const take = this.#take;
    if (!take) {
      return;
    }
    this.#drawnAtMs = performance.now();
    this.#timeline.resize(element('map', HTMLCanvasElement).clientWidth);
    this.#timeline.end = Math.max(take.frames, take.input?.frames ?? 0);
    const colours = [this.#theme.input, this.#theme.output];
    [take.input, take.output].forEach((sound, index) => {
      const { canvas, painter } = this.#lanes[index] as { canvas: HTMLCanvasElement; painter: SpectrumLane };
      if (chosen('lanes') === 'spectrogram') {
        painter.draw(canvas, this.#theme, this.#timeline, sound && this.#spectrum(sound));
      } else {
        drawWaveform(canvas, this.#theme, this.#timeline, sound, colours[index] as string);
      }
      this.#drawPlayhead(canvas);
    });
    this.map.draw(this.#theme);
    this.#drawPlayhead(element('map', HTMLCanvasElement));
    drawLatencies(this.#latency, this.#theme, this.#timeline, take.latenciesMs);
    // The thumb of a slider stays within it: half of one on either side.
    const takePx = Math.min(take.frames, this.#timeline.shownFrames) * this.#timeline.framePx;
    element('seek', HTMLInputElement).style.width = `${takePx + THUMB_PX}px`;
    this.#drawScale();
    this.map.refresh();
    this.#drawn();
  }

  #spectrum(sound: Sound): Spectrum {
    const spectrum = this.#spectra.get(sound) ?? new Spectrum(sound);
    this.#spectra.set(sound, spectrum);
    return spectrum;
  }

  #drawPlayhead(canvas: HTMLCanvasElement): void {
    const context = canvas.getContext('2d');
    if (context && this.#playhead !== null) {
      context.fillStyle = this.#theme.mark;
      context.fillRect(this.#timeline.x(this.#playhead) - 1, 0, 2, canvas.clientHeight);
    }
  }

  #drawScale(): void {
    const { context, widthPx, heightPx } = beginDrawing(this.#scale);
    for (let x = 0; x < widthPx; x += 1) {
      context.fillStyle = heatColour(x, widthPx);
      context.fillRect(x, 0, 1, heightPx);
    }
  }
}
