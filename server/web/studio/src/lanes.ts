/** A sound as a lane: its outline, or its spectrum; and how long each frame waited. */

import { beginDrawing, HEAT_BYTES, type Drawing, type Theme } from './drawing.ts';
import { COLUMNS_PER_FRAME, ROWS, type Spectrum } from './spectrum.ts';
import { PEAKS_PER_FRAME, type Sound } from './take.ts';
import { GUTTER_PX, type Timeline } from './timeline.ts';

/** A frame that waits longer than it lasts is late. */
export const LATE_MS = 80;
const HEADROOM = 1.6;

function ground({ context, widthPx, heightPx }: Drawing, theme: Theme, timeline: Timeline): void {
  context.fillStyle = theme.lane;
  context.fillRect(GUTTER_PX, 0, Math.min(timeline.x(timeline.shownEnd), widthPx) - GUTTER_PX, heightPx);
}

export function drawWaveform(
  canvas: HTMLCanvasElement,
  theme: Theme,
  timeline: Timeline,
  sound: Sound | null,
  colour: string,
): void {
  const drawing = beginDrawing(canvas);
  const { context, heightPx } = drawing;
  ground(drawing, theme, timeline);
  const middlePx = heightPx / 2;
  context.fillStyle = theme.faint;
  context.fillRect(GUTTER_PX, middlePx - 0.5, timeline.x(timeline.shownEnd) - GUTTER_PX, 1);
  if (!sound) {
    return;
  }
  context.fillStyle = colour;
  const widthPx = timeline.framePx / PEAKS_PER_FRAME;
  const first = Math.max(0, timeline.shownFirst) * PEAKS_PER_FRAME;
  const end = Math.floor(Math.min(sound.frames, timeline.shownEnd) * PEAKS_PER_FRAME);
  for (let index = first; index < end; index += 1) {
    const [least, greatest] = sound.peak(index);
    const topPx = middlePx - Math.min(1, greatest) * (middlePx - 1);
    context.fillRect(timeline.x(index / PEAKS_PER_FRAME), topPx - 0.5, widthPx + 0.25, (greatest - least) * (middlePx - 1) + 1);
  }
}

/** Draws spectra through a small picture of one pixel a value, stretched over the lane. */
export class SpectrumLane {
  #picture = document.createElement('canvas');

  draw(canvas: HTMLCanvasElement, theme: Theme, timeline: Timeline, spectrum: Spectrum | null): void {
    const drawing = beginDrawing(canvas);
    ground(drawing, theme, timeline);
    const first = Math.max(0, timeline.shownFirst * COLUMNS_PER_FRAME);
    const columns = Math.min(spectrum?.end ?? 0, timeline.shownEnd * COLUMNS_PER_FRAME) - first;
    if (!spectrum || columns <= 0) {
      return;
    }
    const image = new ImageData(columns, ROWS);
    for (let column = 0; column < columns; column += 1) {
      const values = spectrum.column(first + column);
      for (let row = 0; row < ROWS; row += 1) {
        image.data.set(HEAT_BYTES[values[row] as number] as number[], 4 * ((ROWS - 1 - row) * columns + column));
        image.data[4 * ((ROWS - 1 - row) * columns + column) + 3] = 255;
      }
    }
    this.#picture.width = columns;
    this.#picture.height = ROWS;
    this.#picture.getContext('2d')?.putImageData(image, 0, 0);
    const [fromPx, toPx] = [timeline.x(first / COLUMNS_PER_FRAME), timeline.x((first + columns) / COLUMNS_PER_FRAME)];
    drawing.context.drawImage(this.#picture, fromPx, 0, toPx - fromPx, drawing.heightPx);
  }
}

/** A bar for each frame; a late one reaches the line and has a foot. */
export function drawLatencies(
  canvas: HTMLCanvasElement,
  theme: Theme,
  timeline: Timeline,
  latenciesMs: readonly (number | null)[],
): void {
  const drawing = beginDrawing(canvas);
  const { context, heightPx } = drawing;
  ground(drawing, theme, timeline);
  const y = (ms: number) => heightPx - Math.min(1, ms / (HEADROOM * LATE_MS)) * heightPx;
  for (let frame = Math.max(0, timeline.shownFirst); frame < Math.min(latenciesMs.length, timeline.shownEnd); frame += 1) {
    const ms = latenciesMs[frame];
    if (ms !== null && ms !== undefined) {
      const isLate = ms > LATE_MS;
      context.fillStyle = isLate ? theme.mark : theme.output;
      context.fillRect(timeline.x(frame), y(ms), timeline.framePx - 1, heightPx - y(ms));
      if (isLate) {
        context.fillRect(timeline.x(frame) - 1, heightPx - 3, timeline.framePx + 1, 3);
      }
    }
  }
  context.fillStyle = theme.faint;
  context.fillRect(GUTTER_PX, y(LATE_MS), timeline.x(timeline.shownEnd) - GUTTER_PX, 1);
  context.textAlign = 'right';
  context.fillText('80 ms', GUTTER_PX - 6, y(LATE_MS));
}
