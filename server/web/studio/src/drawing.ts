/** What the lanes have in common: a canvas at the screen's own resolution, and the colours of the theme. */

/** From dark to bright, so that values are told apart in light, in dark and without colour. */
const HEAT = ['#221d4b', '#3b3f8f', '#2f7d9a', '#54b28a', '#d3d264', '#fff3c9'];
const HEAT_STEPS = 256;

/** Colours of the page, as its style sheet has them now. */
export interface Theme {
  ink: string;
  faint: string;
  lane: string;
  input: string;
  output: string;
  mark: string;
}

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: colour('--ink'),
    faint: colour('--faint'),
    lane: colour('--lane'),
    input: colour('--input'),
    output: colour('--accent'),
    mark: colour('--mark'),
  };
}

/** Red, green and blue of every step from low to high. */
export const HEAT_BYTES: readonly (readonly number[])[] = Array.from({ length: HEAT_STEPS }, (_, step) => {
  const at = (step / (HEAT_STEPS - 1)) * (HEAT.length - 1);
  const low = Math.min(Math.floor(at), HEAT.length - 2);
  const channel = (index: number, place: number) => parseInt((HEAT[index] as string).slice(1 + 2 * place, 3 + 2 * place), 16);
  return [0, 1, 2].map((place) =>
    Math.round(channel(low, place) + (channel(low + 1, place) - channel(low, place)) * (at - low)),
  );
});

const HEAT_COLOURS = HEAT_BYTES.map((bytes) => `rgb(${bytes.join(' ')})`);

/** The colour of a code, of so many entries. */
export function heatColour(code: number, entries: number): string {
  return HEAT_COLOURS[Math.min(HEAT_STEPS - 1, Math.floor((code * HEAT_STEPS) / entries))] as string;
}

export interface Drawing {
  context: CanvasRenderingContext2D;
  widthPx: number;
  heightPx: number;
}

/** Clear a canvas and make one unit of it one CSS pixel. */
export function beginDrawing(canvas: HTMLCanvasElement): Drawing {
  const { clientWidth: widthPx, clientHeight: heightPx } = canvas;
  const scale = devicePixelRatio;
  if (canvas.width !== Math.round(widthPx * scale) || canvas.height !== Math.round(heightPx * scale)) {
    canvas.width = Math.round(widthPx * scale);
    canvas.height = Math.round(heightPx * scale);
  }
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, widthPx, heightPx);
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  return { context, widthPx, heightPx };
}
