/** What this page asks of the service that it came from, with a key where that wants one. */

import {
  MimiError,
  MimiStream,
  refusalOfAnswer,
  requestToken,
  type Codes,
  type StreamOptions,
  type StreamSettings,
} from 'mimi-client';

/** What `/v1/info` says of the model. */
export interface ModelFacts {
  name: string;
  weight_class: string;
  numerics: string;
  sample_rate_hz: number;
  frame_rate_hz: number;
  levels: number;
  default_levels: number;
  codebook_entries: number;
}

const WAV_HEADER_BYTES = 44;
/** Input that may wait in the page while the line is lost: five minutes of sound. */
const MOST_UNSENT_BYTES = 300 * 48_000;

/** The key stays in the page's memory, nowhere else, and goes only into headers; a WebSocket, which has none, gets a token. */
export class Service {
  #base: string;
  #key = '';

  /** @param base address of the page */
  constructor(base: string) {
    this.#base = base;
  }

  /** @param key what the service is asked with from now on; empty for none */
  use(key: string): void {
    this.#key = key;
  }

  async facts(): Promise<ModelFacts> {
    const answer = await this.#fetch('v1/info');
    return ((await answer.json()) as { model: ModelFacts }).model;
  }

  stream(settings: StreamSettings, options: StreamOptions): Promise<MimiStream> {
    const key = this.#key;
    const leave = key ? { token: () => requestToken(this.#base, key) } : {};
    return MimiStream.connect(this.#url('v1/stream'), settings, { maxUnsentBytes: MOST_UNSENT_BYTES, ...options, ...leave });
  }

  /** Decode a clip; 24 kHz mono, as long as its frames. */
  async decode(codes: Codes, signal: AbortSignal): Promise<Int16Array<ArrayBuffer>> {
    const answer = await this.#fetch(`v1/decode?levels=${codes.levels}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/octet-stream', Accept: 'audio/wav' },
      body: codes.data,
      signal,
    });
    return new Int16Array((await answer.arrayBuffer()).slice(WAV_HEADER_BYTES));
  }

  /** The sound file that comes with the page. */
  async example(): Promise<ArrayBuffer> {
    return (await this.#fetch('web/example.wav')).arrayBuffer();
  }

  #url(path: string): string {
    return new URL(path, this.#base).href;
  }

  async #fetch(path: string, options: RequestInit = {}): Promise<Response> {
    // Headers take bytes, and the service takes those of UTF-8.
    const bytes = String.fromCharCode(...new TextEncoder().encode(this.#key));
    const headers = { ...(bytes ? { Authorization: `Bearer ${bytes}` } : {}), ...options.headers };
    let answer: Response;
    try {
      answer = await fetch(this.#url(path), { cache: 'no-store', ...options, headers });
    } catch (cause) {
      if (options.signal?.aborted) {
        throw cause;
      }
      throw new MimiError('unavailable', { subject: this.#url(path), found: String(cause), expected: 'an answer' });
    }
    if (!answer.ok) {
      throw await refusalOfAnswer(answer);
    }
    return answer;
  }
}

/** Bits a second of so many levels. */
export function bitRate(model: ModelFacts, levels: number): number {
  return levels * Math.log2(model.codebook_entries) * model.frame_rate_hz;
}

export function bitRateInWords(model: ModelFacts, levels: number): string {
  return `${(bitRate(model, levels) / 1000).toFixed(2)}\u00a0kbit/s`;
}
