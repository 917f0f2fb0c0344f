// @ts-check
import { Refusal, refusalOfAnswer } from './words.js';

/**
 * @typedef {object} ModelFacts what `/v1/info` says of the model
 * @property {string} name
 * @property {string} weight_class
 * @property {string} numerics
 * @property {number} sample_rate_hz
 * @property {number} frame_rate_hz
 * @property {number} levels
 * @property {number} default_levels
 * @property {number} codebook_entries
 */

/** @import { Access } from './access.js' */

/**
 * Ask the server what it runs.
 * @param {Access} access
 * @returns {Promise<ModelFacts>}
 * @throws {Refusal}
 */
export async function askForFacts(access) {
  let answer;
  try {
    answer = await access.fetch('v1/info');
  } catch {
    throw new Refusal('unreachable');
  }
  if (!answer.ok) {
    throw await refusalOfAnswer(answer);
  }
  return (await answer.json()).model;
}

/**
 * Bits a second of so many levels.
 * @param {ModelFacts} model
 * @param {number} levels
 */
export function bitRate(model, levels) {
  return levels * Math.log2(model.codebook_entries) * model.frame_rate_hz;
}

/**
 * @param {ModelFacts} model
 * @param {number} levels
 */
export function bitRateInWords(model, levels) {
  return `${(bitRate(model, levels) / 1000).toFixed(2)}\u00a0kbit/s`;
}
