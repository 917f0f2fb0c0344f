import { beginDrawing, heatColour, type Theme } from './drawing.ts';
import type { Take } from './take.ts';
import { GUTTER_PX, seconds, type Timeline } from './timeline.ts';

const CELL_PX = { least: 7, most: 16 };
const TARGET_PX = 232;
/** Between the semantic level and the acoustic ones. */
const SPLIT_PX = 4;
/** Above the first level, for half a label. */
const TOP_PX = 5;
const AXIS_PX = 20;
const TICK_FRAMES = 25;
/** Levels that are there and not heard. */
const UNHEARD_ALPHA = 0.22;

interface Cell {
  frame: number;
  level: number;
}

/** Frames and levels to go by. */
const KEYS = new Map<string, [frames: number, levels: number]>([
  ['ArrowLeft', [-1, 0]],
  ['ArrowRight', [1, 0]],
  ['ArrowUp', [0, -1]],
  ['ArrowDown', [0, 1]],
  ['PageUp', [-TICK_FRAMES, 0]],
  ['PageDown', [TICK_FRAMES, 0]],
  ['Home', [-Infinity, 0]],
  ['End', [Infinity, 0]],
]);

/** The heat map: levels downwards, time to the right, a colour for each code; pointer and keys ask for the number. */
export class CodeMap {
  #canvas: HTMLCanvasElement;
  #timeline: Timeline;
  #tell: (text: string) => void;
  #changed: () => void;
  #take: Take | null = null;
  #entries = 1;
  #levels = 1;
  #heard = 1;
  #cellPx = CELL_PX.least;
  #selected: Cell | null = null;
  #hovered: Cell | null = null;

  /**
   * @param tell says what the cell that was asked for holds; empty where none is
   * @param changed asks for drawing
   */
  constructor(canvas: HTMLCanvasElement, timeline: Timeline, tell: (text: string) => void, changed: () => void) {
    this.#canvas = canvas;
    this.#timeline = timeline;
    this.#tell = tell;
    this.#changed = changed;
    canvas.addEventListener('pointermove', (event) => this.#hover(this.#cellAt(event)));
    canvas.addEventListener('pointerleave', () => this.#hover(null));
    canvas.addEventListener('pointerdown', (event) => this.#select(this.#cellAt(event)));
    canvas.addEventListener('keydown', (event) => this.#key(event));
  }

  /** @param entries codes there are */
  use(take: Take, entries: number): void {
    this.#take = take;
    this.#entries = entries;
    this.#selected = this.#hovered = null;
    this.#levels = take.levels;
    this.#cellPx = Math.max(CELL_PX.least, Math.min(CELL_PX.most, Math.floor(TARGET_PX / take.levels)));
    this.#canvas.style.height = `${this.#y(take.levels) + AXIS_PX}px`;
    this.#tell('');
  }

  /** How many levels are heard; the others are drawn faintly. */
  set heard(levels: number) {
    this.#heard = levels;
    this.refresh();
  }

  /** Tell of the cell that was asked for. */
  refresh(): void {
    const cell = this.#hovered ?? this.#selected;
    this.#tell(cell ? this.#words(cell) : '');
  }

  draw(theme: Theme): void {
    const { context, widthPx } = beginDrawing(this.#canvas);
    const rightPx = Math.min(this.#timeline.x(this.#timeline.shownEnd), widthPx);
    context.fillStyle = theme.lane;
    context.fillRect(GUTTER_PX, TOP_PX, rightPx - GUTTER_PX, this.#cellPx);
    context.fillRect(GUTTER_PX, this.#y(1), rightPx - GUTTER_PX, this.#y(this.#levels) - this.#y(1));
    this.#drawCodes(context);
    if (this.#heard < this.#levels) {
      context.fillStyle = theme.ink;
      context.fillRect(GUTTER_PX, this.#y(this.#heard) - 1, rightPx - GUTTER_PX, 1);
    }
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

  #drawCodes(context: CanvasRenderingContext2D): void {
    const { framePx, shownFirst, shownEnd } = this.#timeline;
    const take = this.#take;
    for (let frame = Math.max(0, shownFirst); take && frame < Math.min(take.frames, shownEnd); frame += 1) {
      const codes = take.frame(frame);
      const x = this.#timeline.x(frame);
      codes.forEach((code, level) => {
        context.globalAlpha = level < this.#heard ? 1 : UNHEARD_ALPHA;
        context.fillStyle = heatColour(code, this.#entries);
        context.fillRect(x, this.#y(level), framePx - 1, this.#cellPx - 1);
      });
    }
    context.globalAlpha = 1;
  }

  #drawAxes(context: CanvasRenderingContext2D, theme: Theme, rightPx: number): void {
    context.fillStyle = theme.faint;
    context.textAlign = 'right';
    const every = this.#cellPx >= 11 ? 1 : 4;
    for (let level = 0; level < this.#levels; level += 1) {
      if (level % every === 0 || level === this.#levels - 1) {
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

  /** The upper edge of a level. */
  #y(level: number): number {
    return TOP_PX + level * this.#cellPx + (level > 0 ? SPLIT_PX : 0);
  }

  #cellAt(event: PointerEvent): Cell | null {
    const box = this.#canvas.getBoundingClientRect();
    const y = event.clientY - box.top - TOP_PX;
    const level = y < this.#cellPx ? 0 : Math.floor((y - SPLIT_PX) / this.#cellPx);
    const cell = { frame: this.#timeline.frameAt(event.clientX - box.left), level };
    return this.#exists(cell) ? cell : null;
  }

  #exists({ frame, level }: Cell): boolean {
    const take = this.#take;
    return take !== null && frame >= 0 && frame < take.frames && level >= 0 && level < take.levels;
  }

  #hover(cell: Cell | null): void {
    this.#hovered = cell;
    this.refresh();
    this.#changed();
  }

  #select(cell: Cell | null): void {
    this.#selected = cell;
    if (cell) {
      this.#timeline.show(cell.frame);
    } else {
      this.#timeline.follow();
    }
    this.refresh();
    this.#changed();
  }

  #key(event: KeyboardEvent): void {
    const take = this.#take;
    if (event.key === 'Escape') {
      this.#select(null);
    } else if (take && take.frames > 0 && KEYS.has(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      const [frames, levels] = this.#selected ? (KEYS.get(event.key) as [number, number]) : [0, 0];
      const { frame, level } = this.#selected ?? { frame: take.frames - 1, level: 0 };
      this.#select({
        frame: Math.max(0, Math.min(take.frames - 1, frame + frames)),
        level: Math.max(0, Math.min(take.levels - 1, level + levels)),
      });
    }
  }

  #words({ frame, level }: Cell): string {
    const code = this.#exists({ frame, level }) ? this.#take?.frame(frame)[level] : undefined;
    if (code === undefined) {
      return '';
    }
    const kind = level === 0 ? 'semantic' : 'acoustic';
    const heard = level < this.#heard ? '' : ', not heard';
    return `code ${code} of 0 .. ${this.#entries - 1} · level ${level}, ${kind}${heard} · frame ${frame}, at ${seconds(frame)}`;
  }
}
