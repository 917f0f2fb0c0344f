/**
 * A client of mimi-server for browsers and Node: streams of codes and sound that outlive their connections, and what sound needs
 * on its way in and out.
 */

export { requestToken, streamUrl } from './access.ts';
export { decode, duplex, encode, type Echo } from './clip.ts';
export { firstLevels, parseCodes, toMimi, toNpy, type Codes } from './codes.ts';
export { ERROR_CODES, MimiError, refusalOfAnswer, type ErrorCode, type ErrorFacts } from './errors.ts';
export { JitterBuffer, type JitterBufferOptions, type JitterReport } from './jitter-buffer.ts';
export type { Flushed, Frame, Ready } from './messages.ts';
export { toFloat32, toInt16, type Payload } from './payload.ts';
export { Resampler } from './resampler.ts';
export type { LineOptions, Mode, SampleFormat, StreamSettings } from './settings.ts';
export { MimiStream, type Notice, type StreamOptions, type StreamStats } from './stream.ts';
export { parseWav, toWav, type WavSound } from './wav.ts';
