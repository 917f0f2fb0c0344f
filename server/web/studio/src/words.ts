/** Every way in which it does not go on, in words for a person. */

import { MimiError } from 'mimi-client';

/**
 * Headline and advice. Codes of the service are here where a person can do something about them; for the others its own fixed
 * sentence is the headline.
 */
const WORDS: Record<string, [headline: string, advice?: string]> = {
  insecure: [
    'The browser withholds microphone and audio from this page.',
    'It lets only pages use them that come over HTTPS or from this computer (http://localhost). Put the service behind TLS, or ' +
      'reach it through a tunnel: ssh -L 8000:localhost:8000 HOST, then open http://localhost:8000.',
  ],
  old_browser: ['This browser is too old for this page.', 'It needs WebSocket, AudioWorklet and getUserMedia.'],
  microphone_denied: [
    'The browser was not allowed to use the microphone.',
    'Allow it in the settings of this page, mostly behind the icon beside the address, and speak again. A file works without.',
  ],
  microphone_missing: ['No microphone was found.', 'Connect one and try again, or choose a file.'],
  microphone_busy: ['The microphone cannot be opened.', 'Another program may be using it. Close that and try again.'],
  microphone_failed: ['The microphone cannot be used.'],
  microphone_lost: ['The microphone went away.', 'Connect it again. What came before is here.'],
  file_unreadable: [
    'This file cannot be read, neither as sound nor as codes.',
    'WAV, FLAC, MP3 and Ogg mostly work as sound; .npy, .mimi and .json as codes.',
  ],
  file_too_big: ['The file is too big for this page.', 'For long recordings, use the commands mimi encode and mimi decode.'],
  no_output: ['The browser cannot start its audio.', 'It needs a loudspeaker or headphones, even where only codes are wanted.'],
  behind: [
    'Sound piles up: the network or the server takes it more slowly than it is made.',
    'Try a nearer server or a faster one. What was answered is here.',
  ],
  full: ['This page holds ten minutes.', 'What was said so far is here. For longer recordings, use mimi stream.'],
  unavailable: ['The server does not answer.', 'It may be down or restarting. Try again in a moment.'],
  unauthorized: ['The service asks for a key.', 'Enter one; the operator has them.'],
  token_expired: ['The leave to stream has expired.', 'Try again.'],
  page_failed: ['This page made a mistake.', 'Reload it; please report what is said here.'],
  capacity: ['Every place on the server is taken.', 'Try again in a moment.'],
  address_capacity: ['This address has all the streams that one may have.', 'Close another page, or try again in a moment.'],
  overloaded: ['The server has no time for one stream more.', 'Try again in a moment.'],
  draining: ['The server is going down or restarting.', 'Try again in a moment.'],
  forbidden_origin: [
    'The server does not take streams from pages of this address.',
    'The operator can allow it with --allowed-origins.',
  ],
  setting: ['The server does not take these settings.'],
  codes_file: ['These codes cannot be read.', 'They must be .npy [levels, frames], .mimi, or .json of the service.'],
  code_range: ['These codes are of another model.', 'One of them is outside the codebook of the model that runs here.'],
  resume_lost: ['The stream cannot be had back: the connection was away for too long.', 'What was answered is here.'],
  resume_refused: ['The stream cannot be had back: the server does not have it any more.', 'What was answered is here.'],
  internal: ['The server failed.', 'Please report it; its log says more.'],
};

/** Something does not go on. `code` names it: a key of the table above, or a code of the service. */
export class Refusal extends Error {
  readonly code: string;
  readonly headline: string;
  readonly advice: string;

  /** @param detail what exactly was found */
  constructor(code: string, detail = '', headline = code) {
    super(detail);
    this.code = code;
    this.headline = WORDS[code]?.[0] ?? headline;
    this.advice = WORDS[code]?.[1] ?? '';
  }
}

/** Whatever was thrown, for a person. */
export function refusalOf(cause: unknown): Refusal {
  if (cause instanceof Refusal) {
    return cause;
  }
  if (cause instanceof MimiError) {
    return new Refusal(cause.code, cause.message, cause.reason || cause.message);
  }
  return new Refusal('page_failed', String(cause));
}
