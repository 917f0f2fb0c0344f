// @ts-check
import { CodeMap } from './code-map.js';
import { element, say } from './dom.js';
import { beginDrawing, heatColour, readTheme } from './drawing.js';
import { Timeline } from './timeline.js';
import { drawWaveform } from './waveform.js';

/** @import { ModelFacts } from './facts.js' */
/** @import { LiveStream } from './live-stream.js' */

/** Least time between two pictures. Where motion is unwelcome they follow one another like slides. */
const PICTURE_MS = { moving: 60, calm: 1_000 };

/** The lanes: sound in, codes, sound out, over one time axis. */
export class View {
  #canvases = {
    input: element('input', HTMLCanvasElement),
    map: element('map', HTMLCanvasElement),
    output: element('output', HTMLCanvasElement),
    scale: element('scale', HTMLCanvasElement),
  };
  #calm = matchMedia('(prefers-reduced-motion: reduce)');
  #timeline = new Timeline();
  #map;
  #drawnAtMs = 0;
  #waiting = false;
  /** @type {LiveStream | null} */
  #stream = null;
  #drawn;
  /** Whether there is a lane for sound that comes back. */
  echo = false;

  /** @param {() => void} drawn is called after each picture */
  constructor(drawn) {
    this.#drawn = drawn;
    this.#map = new CodeMap(
      this.#canvases.map,
      this.#timeline,
      (text) => say('cell', text),
      () => this.draw(),
    );
    addEventListener('resize', () => this.draw());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
  }

  /**
   * @param {LiveStream | null} stream what to show; null, nothing yet
   * @param {number} levels
   * @param {ModelFacts} model
   */
  use(stream, levels, model) {
    this.#stream = stream;
    this.#timeline.follow();
    this.#map.use(stream?.codes ?? null, levels, model.codebook_entries);
    say('scale-most', String(model.codebook_entries - 1));
    this.draw();
  }

  /** Something new came: draw, unless the last picture is too recent. */
  refresh() {
    const leastMs = this.#calm.matches ? PICTURE_MS.calm : PICTURE_MS.moving;
    if (performance.now() - this.#drawnAtMs >= leastMs) {
      this.draw();
    }
  }

  /** Draw at the next occasion. */
  draw() {
    if (!this.#waiting) {
      this.#waiting = true;
      requestAnimationFrame(() => this.#drawNow());
    }
  }

  #drawNow() {
    this.#waiting = false;
    this.#drawnAtMs = performance.now();
    const theme = readTheme();
    const stream = this.#stream;
    this.#canvases.output.hidden = !this.echo;
    this.#timeline.resize(this.#canvases.map.clientWidth);
    this.#timeline.end = Math.max(stream?.codes.end ?? 0, stream?.input.frames ?? 0);
    drawWaveform(this.#canvases.input, 'in', stream?.input ?? null, this.#timeline, theme);
    this.#map.draw(theme);
    if (this.echo) {
      drawWaveform(this.#canvases.output, 'out', stream?.output ?? null, this.#timeline, theme);
    }
    this.#drawScale();
    this.#drawn();
  }

  #drawScale() {
    const { context, widthPx, heightPx } = beginDrawing(this.#canvases.scale);
    for (let x = 0; x < widthPx; x += 1) {
      context.fillStyle = heatColour(x, widthPx);
      context.fillRect(x, 0, 1, heightPx);
    }
  }
}
