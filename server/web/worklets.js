// @ts-check
import { Refusal } from './words.js';

/**
 * Load code for the audio thread.
 * @param {AudioContext} context
 * @param {'capture' | 'pace' | 'player'} name
 * @throws {Refusal} the server does not give it
 */
export async function loadWorklet(context, name) {
  try {
    await context.audioWorklet.addModule(new URL(`${name}-worklet.js`, import.meta.url));
  } catch (cause) {
    throw new Refusal('unreachable', cause instanceof Error ? cause.message : String(cause));
  }
}
