// @ts-check
import { beginDrawing, heatColour } from './drawing.js';
import { GUTTER_PX, seconds } from './timeline.js';

/** @import { CodeHistory } from './history.js' */
/** @import { Theme } from './drawing.js' */
/** @import { Timeline } from './timeline.js' */

const CELL_PX = { least: 7, most: 16 };
const TARGET_PX = 232;
/** Between the semantic level and the acoustic ones. */
const SPLIT_PX = 4;
/** Above the first level, for half a label. */
const TOP_PX = 5;
const AXIS_PX = 20;
const TICK_FRAMES = 25;

/** @typedef {{ frame: number, level: number }} Cell */

/** The heat map: levels downwards, time to the right, a colour for each code; pointer and keys ask for the number. */
export class CodeMap {
  #canvas;
  #timeline;
  #tell;
  #changed;
  /** @type {CodeHistory | null} */
  #history = null;
  #entries = 1;
  #levels = 1;
  #cellPx = CELL_PX.least;
  /** @type {Cell | null} */
  #selected = null;
  /** @type {Cell | null} */
  #hovered = null;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Timeline} timeline
   * @param {(text: string) => void} tell says what the cell that was asked for holds; empty where none is
   * @param {() => void} changed asks for drawing
   */
  constructor(canvas, timeline, tell, changed) {
    this.#canvas = canvas;
    this.#timeline = timeline;
    this.#tell = tell;
    this.#changed = changed;
    canvas.addEventListener('pointermove', (event) => this.#hover(this.#cellAt(event)));
    canvas.addEventListener('pointerleave', () => this.#hover(null));
    canvas.addEventListener('pointerdown', (event) => this.#select(this.#cellAt(event)));
    canvas.addEventListener('keydown', (event) => this.#key(event));
  }

  /**
   * @param {CodeHistory | null} history
   * @param {number} levels of the map, also while it is empty
   * @param {number} entries codes there are
   */
  use(history, levels, entries) {
    this.#history = history;
    this.#entries = entries;
    this.#selected = this.#hovered = null;
    this.#levels = levels;
    this.#cellPx = Math.max(CELL_PX.least, Math.min(CELL_PX.most, Math.floor(TARGET_PX / levels)));
    this.#canvas.style.height = `${this.#y(levels) + AXIS_PX}px`;
    this.#tell('');
  }

  /** The newest frame's codes, or those of the cell that was asked for, are told. */
  refresh() {
    const cell = this.#hovered ?? this.#selected;
    this.#tell(cell ? this.#words(cell) : '');
  }

  /** @param {Theme} theme */
  draw(theme) {
    const { context, widthPx } = beginDrawing(this.#canvas);
    const rightPx = Math.min(this.#timeline.x(this.#timeline.shownEnd), widthPx);
    context.fillStyle = theme.lane;
    context.fillRect(GUTTER_PX, TOP_PX, rightPx - GUTTER_PX, this.#cellPx);
    context.fillRect(GUTTER_PX, this.#y(1), rightPx - GUTTER_PX, this.#y(this.#levels) - this.#y(1));
    this.#drawCodes(context);
    this.#drawAxes(context, theme, rightPx);
    for (const cell of [this.#selected, this.#hovered]) {
      if (cell && this.#exists(cell)) {
        context.strokeStyle = theme.mark;
        context.lineWidth = 2;
        context.strokeRect(
          this.#timeline.x(cell.frame) - 1,
          this.#y(cell.level) - 1,
          this.#timeline.framePx + 1,
          this.#cellPx + 1,
        );
      }
    }
  }

  /** @param {CanvasRenderingContext2D} context */
  #drawCodes(context) {
    const history = this.#history;
    if (!history) {
      return;
    }
    const { framePx, shownFirst, shownEnd } = this.#timeline;
    for (let frame = Math.max(history.first, shownFirst); frame < Math.min(history.end, shownEnd); frame += 1) {
      const codes = history.frame(frame);
      const x = this.#timeline.x(frame);
      for (let level = 0; level < codes.length; level += 1) {
        context.fillStyle = heatColour(codes[level], this.#entries);
        context.fillRect(x, this.#y(level), framePx - 1, this.#cellPx - 1);
      }
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Theme} theme
   * @param {number} rightPx
   */
  #drawAxes(context, theme, rightPx) {
    context.fillStyle = theme.faint;
    context.textAlign = 'right';
    const every = this.#cellPx >= 11 ? 1 : 4;
    for (let level = 0; level < this.#levels; level += 1) {
      if (level === 0 || level % every === 0 || level === this.#levels - 1) {
        context.fillText(String(level), GUTTER_PX - 8, this.#y(level) + this.#cellPx / 2);
      }
    }
    context.textAlign = 'center';
    const axisPx = this.#y(this.#levels);
    const first = Math.max(0, Math.ceil(this.#timeline.shownFirst / TICK_FRAMES) * TICK_FRAMES);
    for (let frame = first; frame < this.#timeline.shownEnd; frame += TICK_FRAMES) {
      const x = this.#timeline.x(frame);
      context.fillRect(x, axisPx, 1, 4);
      if (x + 16 < rightPx) {
        context.fillText(seconds(frame, 0), Math.max(x, GUTTER_PX + 8), axisPx + 12);
      }
    }
  }

  /** @param {number} level @returns {number} its upper edge */
  #y(level) {
    return TOP_PX + level * this.#cellPx + (level > 0 ? SPLIT_PX : 0);
  }

  /** @param {PointerEvent} event @returns {Cell | null} */
  #cellAt(event) {
    const box = this.#canvas.getBoundingClientRect();
    const y = event.clientY - box.top - TOP_PX;
    const level = y < this.#cellPx ? 0 : Math.floor((y - SPLIT_PX) / this.#cellPx);
    const cell = { frame: this.#timeline.frameAt(event.clientX - box.left), level };
    return this.#exists(cell) ? cell : null;
  }

  /** @param {Cell} cell */
  #exists({ frame, level }) {
    const history = this.#history;
    return history !== null && frame >= history.first && frame < history.end && level >= 0 && level < history.levels;
  }

  /** @param {Cell | null} cell */
  #hover(cell) {
    this.#hovered = cell;
    this.refresh();
    this.#changed();
  }

  /** @param {Cell | null} cell */
  #select(cell) {
    this.#selected = cell;
    cell ? this.#timeline.show(cell.frame) : this.#timeline.follow();
    this.refresh();
    this.#changed();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const history = this.#history;
    if (event.key === 'Escape') {
      this.#select(null);
    } else if (history && history.end > 0 && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const cell = this.#selected ?? { frame: history.end - 1, level: 0 };
      const moved = this.#selected ? this.#moved(cell, event.key, history) : KEYS.has(event.key) ? cell : null;
      if (moved) {
        event.preventDefault();
        this.#select(moved);
      }
    }
  }

  /**
   * @param {Cell} cell
   * @param {string} key
   * @param {CodeHistory} history
   * @returns {Cell | null} the cell that the key leads to; null for a key that leads nowhere
   */
  #moved({ frame, level }, key, history) {
    const step = KEYS.get(key);
    if (!step) {
      return null;
    }
    return {
      frame: Math.max(history.first, Math.min(history.end - 1, frame + step[0])),
      level: Math.max(0, Math.min(history.levels - 1, level + step[1])),
    };
  }

  /** @param {Cell} cell */
  #words({ frame, level }) {
    if (!this.#exists({ frame, level })) {
      return '';
    }
    const code = this.#history?.frame(frame)[level];
    const kind = level === 0 ? 'semantic' : 'acoustic';
    return `code ${code} of 0 .. ${this.#entries - 1} · level ${level}, ${kind} · frame ${frame}, at ${seconds(frame)}`;
  }
}

/** Frames and levels to go by. @type {Map<string, [frames: number, levels: number]>} */
const KEYS = new Map([
  ['ArrowLeft', [-1, 0]],
  ['ArrowRight', [1, 0]],
  ['ArrowUp', [0, -1]],
  ['ArrowDown', [0, 1]],
  ['PageUp', [-TICK_FRAMES, 0]],
  ['PageDown', [TICK_FRAMES, 0]],
  ['Home', [-Infinity, 0]],
  ['End', [Infinity, 0]],
]);
