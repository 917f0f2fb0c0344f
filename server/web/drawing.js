// @ts-check
/** What the lanes have in common: a canvas at the screen's own resolution, and the colours of the theme. */

/** Low codes to high ones; told apart in light, in dark and without colour, since lightness rises all along. */
const HEAT = ['#2d2466', '#3a4f9d', '#25818e', '#58b368', '#f3d94e'];
const HEAT_STEPS = 256;

/**
 * @typedef {object} Theme colours of the page, as its style sheet has them now
 * @property {string} ink
 * @property {string} faint
 * @property {string} line
 * @property {string} lane
 * @property {string} wave
 * @property {string} mark
 */

/** @returns {Theme} */
export function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const colour = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
  return {
    ink: colour('--ink'),
    faint: colour('--faint'),
    line: colour('--line'),
    lane: colour('--lane'),
    wave: colour('--accent'),
    mark: colour('--mark'),
  };
}

/** @type {string[]} */
const heatColours = Array.from({ length: HEAT_STEPS }, (_, step) => {
  const at = (step / (HEAT_STEPS - 1)) * (HEAT.length - 1);
  const low = Math.min(Math.floor(at), HEAT.length - 2);
  const channel = (/** @type {string} */ hex, /** @type {number} */ index) =>
    parseInt(hex.slice(1 + 2 * index, 3 + 2 * index), 16);
  const mixed = [0, 1, 2].map((index) => {
    const [from, to] = [channel(HEAT[low], index), channel(HEAT[low + 1], index)];
    return Math.round(from + (to - from) * (at - low));
  });
  return `rgb(${mixed.join(' ')})`;
});

/**
 * @param {number} code
 * @param {number} entries codes there are
 * @returns {string} its colour
 */
export function heatColour(code, entries) {
  return heatColours[Math.floor((code * HEAT_STEPS) / entries)] ?? heatColours[HEAT_STEPS - 1];
}

/**
 * Clear a canvas and make one unit of it one CSS pixel.
 * @param {HTMLCanvasElement} canvas
 * @returns {{ context: CanvasRenderingContext2D, widthPx: number, heightPx: number }}
 */
export function beginDrawing(canvas) {
  const { clientWidth: widthPx, clientHeight: heightPx } = canvas;
  const scale = devicePixelRatio;
  if (canvas.width !== Math.round(widthPx * scale) || canvas.height !== Math.round(heightPx * scale)) {
    canvas.width = Math.round(widthPx * scale);
    canvas.height = Math.round(heightPx * scale);
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, widthPx, heightPx);
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  return { context, widthPx, heightPx };
}
