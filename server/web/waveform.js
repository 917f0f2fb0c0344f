// @ts-check
import { beginDrawing } from './drawing.js';
import { PEAKS_PER_FRAME } from './history.js';
import { GUTTER_PX } from './timeline.js';

/** @import { PeakHistory } from './history.js' */
/** @import { Theme } from './drawing.js' */
/** @import { Timeline } from './timeline.js' */

/**
 * Draw a lane with the outline of a waveform.
 * @param {HTMLCanvasElement} canvas
 * @param {string} label
 * @param {PeakHistory | null} peaks
 * @param {Timeline} timeline
 * @param {Theme} theme
 */
export function drawWaveform(canvas, label, peaks, timeline, theme) {
  const { context, widthPx, heightPx } = beginDrawing(canvas);
  const middlePx = heightPx / 2;
  const rightPx = timeline.x(timeline.shownEnd);
  context.fillStyle = theme.faint;
  context.textAlign = 'right';
  context.fillText(label, GUTTER_PX - 8, middlePx);
  context.fillStyle = theme.lane;
  context.fillRect(GUTTER_PX, 0, Math.min(rightPx, widthPx) - GUTTER_PX, heightPx);
  context.fillStyle = theme.line;
  context.fillRect(GUTTER_PX, middlePx - 0.5, Math.min(rightPx, widthPx) - GUTTER_PX, 1);
  if (peaks) {
    context.fillStyle = theme.wave;
    drawPeaks(context, peaks, timeline, middlePx);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {PeakHistory} peaks
 * @param {Timeline} timeline
 * @param {number} middlePx
 */
function drawPeaks(context, peaks, timeline, middlePx) {
  const widthPx = timeline.framePx / PEAKS_PER_FRAME;
  const first = Math.max(0, timeline.shownFirst * PEAKS_PER_FRAME);
  const end = Math.min(peaks.end, timeline.shownEnd * PEAKS_PER_FRAME);
  for (let index = first; index < end; index += 1) {
    const [least, greatest] = peaks.peak(index);
    const topPx = middlePx - greatest * (middlePx - 1);
    const bottomPx = middlePx - least * (middlePx - 1);
    context.fillRect(timeline.x(index / PEAKS_PER_FRAME), topPx - 0.5, widthPx + 0.25, bottomPx - topPx + 1);
  }
}
