/** The band above the first words: what a code map looks like, for those who have not seen one. It says nothing, and is hidden from readers. */

import { beginDrawing, heatColour } from './drawing.ts';

const CELL_PX = 9;
const ENTRIES = 64;

export function drawHero(canvas: HTMLCanvasElement): void {
  const { context, widthPx, heightPx } = beginDrawing(canvas);
  const columns = Math.ceil(widthPx / CELL_PX);
  const rows = Math.floor(heightPx / CELL_PX);
  for (let column = 0; column < columns; column += 1) {
    const middle = (2 * column) / columns - 1;
    // Syllables: louder and quieter stretches of a voice.
    const voice = 0.5 + 0.5 * Math.sin(column / 3.1) * Math.sin(column / 9.7 + 1);
    for (let row = 0; row < rows; row += 1) {
      const depth = row / rows;
      context.globalAlpha = Math.max(0, (1 - middle ** 4) * (1 - depth * (1.25 - 0.6 * voice)));
      context.fillStyle = heatColour(scattered(row === 0 ? column >> 1 : column * 31 + row * 977), ENTRIES);
      context.fillRect(column * CELL_PX, row * CELL_PX, CELL_PX - 1, CELL_PX - 1);
    }
  }
  context.globalAlpha = 1;
}

/** A number of 0 .. 63 that looks like chance and is always the same. */
function scattered(seed: number): number {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) & (ENTRIES - 1);
}
