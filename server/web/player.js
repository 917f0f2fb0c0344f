// @ts-check

const CAPACITY_S = 8;
const PREFILL_S = 0.16;
/** After the last sample has left the player, the loudspeaker still has some. */
const LOUDSPEAKER_S = 0.1;

/**
 * @typedef {object} PlayerReport
 * @property {number} playedSamples
 * @property {number} waitingSamples received and not yet played
 * @property {number} gaps times that nothing was there to play
 * @property {number} droppedSamples received and thrown away, because more came than is ever played late
 */

/** Plays 16-bit samples at the rate of the context, without gaps, in the audio thread. */
export class Player {
  #context;
  /** @type {AudioWorkletNode} */
  node;
  /** @type {PlayerReport} */
  report = { playedSamples: 0, waitingSamples: 0, gaps: 0, droppedSamples: 0 };
  /** @type {() => void} */
  #drained = () => {};

  /** @param {AudioContext} context */
  constructor(context) {
    this.#context = context;
    this.node = new AudioWorkletNode(context, 'mimi-player', {
      numberOfInputs: 0,
      outputChannelCount: [1],
      processorOptions: {
        capacitySamples: Math.round(CAPACITY_S * context.sampleRate),
        prefillSamples: Math.round(PREFILL_S * context.sampleRate),
      },
    });
    this.node.port.onmessage = ({ data }) => {
      if (data === 'drained') {
        this.#drained();
      } else {
        this.report = data;
      }
    };
    this.node.connect(context.destination);
  }

  /** @param {Int16Array} samples */
  play(samples) {
    this.node.port.postMessage(samples);
  }

  /**
   * Play what is there, then no more.
   * @returns {Promise<void>} when it has been heard
   */
  finish() {
    if (this.#context.state !== 'running') {
      return Promise.resolve();
    }
    this.node.port.postMessage('end');
    return new Promise((resolve) => {
      this.#drained = () => setTimeout(resolve, 1000 * LOUDSPEAKER_S);
      setTimeout(resolve, 1000 * (CAPACITY_S + LOUDSPEAKER_S));
    });
  }
}
