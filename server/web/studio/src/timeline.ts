import { FRAME_S } from './take.ts';

/** Room for the labels on the left, CSS pixels. */
export const GUTTER_PX = 40;
const FRAME_PX = { wide: 7, narrow: 5, most: 24 };
const NARROW_PX = 560;

/** The time axis that the lanes share. It follows the newest frame, or is held at one place to look at it. */
export class Timeline {
  /** Frames that any lane has; the last may not be whole. */
  end = 0;
  #heldEnd: number | null = null;
  #widthPx = 0;
  #isFitted = false;

  /** @param widthPx of the lanes, with the gutter */
  resize(widthPx: number): void {
    this.#widthPx = widthPx;
  }

  /** Whether a short take shall fill the width, as far as that looks well: one that is done, not one that grows. */
  set isFitted(fitted: boolean) {
    this.#isFitted = fitted;
  }

  get framePx(): number {
    const usual = this.#widthPx < NARROW_PX ? FRAME_PX.narrow : FRAME_PX.wide;
    const filling = this.end > 0 ? Math.floor((this.#widthPx - GUTTER_PX) / Math.ceil(this.end)) : 0;
    return this.#isFitted ? Math.max(usual, Math.min(FRAME_PX.most, filling)) : usual;
  }

  /** Whole frames that fit. */
  get shownFrames(): number {
    return Math.max(1, Math.floor((this.#widthPx - GUTTER_PX) / this.framePx));
  }

  /** The frame after the last one shown. */
  get shownEnd(): number {
    return this.#heldEnd ?? Math.max(Math.ceil(this.end), this.shownFrames);
  }

  get shownFirst(): number {
    return this.shownEnd - this.shownFrames;
  }

  /** Follow the newest frame. */
  follow(): void {
    this.#heldEnd = null;
  }

  /** Keep a frame in sight, and the axis still where it is in sight already. */
  show(frame: number): void {
    const end = this.shownEnd;
    const first = end - this.shownFrames;
    this.#heldEnd = frame < first ? Math.max(frame, 0) + this.shownFrames : Math.max(end, Math.floor(frame) + 1);
  }

  /** CSS pixels from the left of a lane; the frame may be a part of one. */
  x(frame: number): number {
    return GUTTER_PX + (frame - this.shownFirst) * this.framePx;
  }

  /** The frame at so many CSS pixels, which may not exist. */
  frameAt(x: number): number {
    return Math.floor((x - GUTTER_PX) / this.framePx) + this.shownFirst;
  }
}

export function seconds(frame: number, digits = 2): string {
  return `${(frame * FRAME_S).toFixed(digits)} s`;
}
