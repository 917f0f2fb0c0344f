/** How a take goes, in numbers. */

import { say } from './dom.ts';
import { LATE_MS } from './lanes.ts';
import type { LiveTake } from './live.ts';
import { bitRate, bitRateInWords, type ModelFacts } from './service.ts';
import type { Take } from './take.ts';

const PCM_BITS = 16;
/** Frames that latency is told of: ten seconds. */
const RECENT = 125;

export function showFigures(take: Take, live: LiveTake | null, model: ModelFacts, levels: number, isLive: boolean): void {
  const waits = take.latenciesMs.slice(-RECENT).filter((ms) => ms !== null);
  const sorted = [...waits].sort((one, other) => one - other);
  say('median', sorted.length ? milliseconds(percentile(sorted, 0.5)) : '–');
  say('jitter', sorted.length ? milliseconds(percentile(sorted, 0.95) - percentile(sorted, 0.05)) : '–');
  say('late', String(take.latenciesMs.filter((ms) => ms !== null && ms > LATE_MS).length));
  say('rate', bitRateInWords(model, levels));
  say('ratio', `${Math.round((model.sample_rate_hz * PCM_BITS) / bitRate(model, levels))} ×`);
  if (live) {
    const { waitingSamples, underruns } = live.player?.report ?? { waitingSamples: 0, underruns: 0 };
    const rateHz = live.player?.node.context.sampleRate ?? 1;
    const heardMs = 1000 / model.frame_rate_hz + percentile(sorted, 0.5) + (1000 * waitingSamples) / rateHz;
    if (isLive && sorted.length) {
      say('delay', `≈ ${milliseconds(heardMs)}`);
    }
    say('gaps', String(underruns));
    say('resumes', String(live.stream?.stats.resumes ?? 0));
  }
}

function percentile(sorted: number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

function milliseconds(ms: number): string {
  return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)}\u00a0ms`;
}
