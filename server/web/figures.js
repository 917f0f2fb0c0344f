// @ts-check
import { say } from './dom.js';
import { bitRate, bitRateInWords } from './facts.js';
import { seconds } from './timeline.js';

/** @import { ModelFacts } from './facts.js' */
/** @import { LiveStream } from './live-stream.js' */

const PCM_BITS = 16;

/**
 * Show how a stream goes, in numbers.
 * @param {LiveStream} stream
 * @param {ModelFacts} model
 */
export function showFigures(stream, model) {
  const { codes, times, player } = stream;
  const waited = times.summary;
  say('streamed', seconds(codes.end, 1));
  say('median', waited ? milliseconds(waited.median) : '–');
  say('slowest', waited ? milliseconds(waited.most) : '–');
  say('late', String(times.late));
  say('rate', bitRateInWords(model, codes.levels));
  say('ratio', `${Math.round((model.sample_rate_hz * PCM_BITS) / bitRate(model, codes.levels))} ×`);
  if (codes.end > 0) {
    say('newest', [...codes.frame(codes.end - 1)].map((code) => String(code).padStart(4)).join(' '));
  }
  if (player) {
    const { waitingSamples, gaps } = player.report;
    const frameMs = 1000 / model.frame_rate_hz;
    say('delay', waited ? `≈ ${milliseconds(frameMs + waited.median + (1000 * waitingSamples) / stream.rateHz)}` : '–');
    say('gaps', String(gaps));
  }
}

/** @param {number} ms */
function milliseconds(ms) {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}
