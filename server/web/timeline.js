// @ts-check
import { KEPT_FRAMES } from './history.js';

const FRAME_S = 0.08;
/** Room for the labels on the left, CSS pixels. */
export const GUTTER_PX = 40;
const FRAME_PX = { wide: 7, narrow: 5 };
const NARROW_PX = 560;

/**
 * The time axis that the lanes share. It follows the newest frame, or is held at one place to look at it.
 */
export class Timeline {
  /** Frames that any lane has; the last may not be whole. */
  end = 0;
  /** @type {number | null} */
  #heldEnd = null;
  #widthPx = 0;

  /** @param {number} widthPx of the lanes, with the gutter */
  resize(widthPx) {
    this.#widthPx = widthPx;
  }

  get framePx() {
    return this.#widthPx < NARROW_PX ? FRAME_PX.narrow : FRAME_PX.wide;
  }

  /** Whole frames that fit. */
  get shownFrames() {
    return Math.max(1, Math.floor((this.#widthPx - GUTTER_PX) / this.framePx));
  }

  /** The frame after the last one shown. */
  get shownEnd() {
    return this.#heldEnd ?? Math.max(Math.ceil(this.end), this.shownFrames);
  }

  get shownFirst() {
    return this.shownEnd - this.shownFrames;
  }

  get held() {
    return this.#heldEnd !== null;
  }

  /** Follow the newest frame. */
  follow() {
    this.#heldEnd = null;
  }

  /** @param {number} frame is to be seen, and the axis to stand still */
  show(frame) {
    const end = this.shownEnd;
    const first = end - this.shownFrames;
    const oldest = Math.max(0, Math.ceil(this.end) - KEPT_FRAMES);
    this.#heldEnd = frame < first ? Math.max(frame, oldest) + this.shownFrames : Math.max(end, frame + 1);
  }

  /**
   * @param {number} frame may be a part of one
   * @returns {number} CSS pixels from the left of a lane
   */
  x(frame) {
    return GUTTER_PX + (frame - this.shownFirst) * this.framePx;
  }

  /** @param {number} x CSS pixels @returns {number} the frame there, which may not exist */
  frameAt(x) {
    return Math.floor((x - GUTTER_PX) / this.framePx) + this.shownFirst;
  }
}

/**
 * @param {number} frame
 * @param {number} [digits]
 */
export function seconds(frame, digits = 2) {
  return `${(frame * FRAME_S).toFixed(digits)} s`;
}
