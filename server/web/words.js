// @ts-check
/** Every way in which it does not go on, in words for a person. */

/** @import { Access } from './access.js' */
/** @import { Ending } from './connection.js' */

/**
 * Headline and advice. Codes of the server are here where a person can do something about them; for the others its own fixed
 * sentence is the headline.
 * @type {Record<string, [headline: string, advice?: string]>}
 */
const WORDS = {
  insecure: [
    'The browser withholds microphone and audio from this page.',
    'It lets only pages use them that come over HTTPS or from this computer (http://localhost). Put the service behind TLS, or ' +
      'reach it through a tunnel: ssh -L 8000:localhost:8000 HOST, then open http://localhost:8000.',
  ],
  old_browser: ['This browser is too old for this page.', 'It needs WebSocket, AudioWorklet and getUserMedia.'],
  microphone_denied: [
    'The browser was not allowed to use the microphone.',
    'Allow it in the settings of this page, mostly behind the icon beside the address, and start again. A file works without.',
  ],
  microphone_missing: ['No microphone was found.', 'Connect one and start again, or choose a file.'],
  microphone_busy: ['The microphone cannot be opened.', 'Another program may be using it. Close that and start again.'],
  microphone_failed: ['The microphone cannot be used.'],
  microphone_lost: ['The microphone went away.', 'Connect it again and start again.'],
  no_file: ['No file is chosen.', 'Choose a sound file, or drop one on this page.'],
  file_unreadable: ['The browser cannot read this file as sound.', 'WAV, FLAC, MP3 and OGG mostly work.'],
  file_too_big: ['The file is too big for this page.', 'For long recordings, use the command mimi encode.'],
  no_output: ['The browser cannot start its audio.', 'It needs a loudspeaker or headphones, even where only codes are wanted.'],
  behind: [
    'Sound piles up: the network or the server takes it more slowly than it is made.',
    'Try fewer levels, a nearer server or a faster one.',
  ],
  unreachable: ['The server does not answer.', 'It may be down or restarting. Try again in a moment.'],
  lost: ['The connection to the server broke off.', 'What was answered so far is shown. Start again.'],
  refused: ['The server answers, but does not let this page stream.', 'A proxy in between may not pass WebSockets on.'],
  unauthorized: ['The service asks for a key.', 'Enter one; the operator has them.'],
  token_expired: ['The leave to stream has expired.', 'Start again.'],
  page_failed: ['This page made a mistake.', 'Reload it; please report what is said here.'],
  capacity: ['Every place on the server is taken.', 'Try again in a moment.'],
  draining: ['The server is going down or restarting.', 'Try again in a moment.'],
  forbidden_origin: [
    'The server does not take streams from pages of this address.',
    'The operator can allow it with --allowed-origins.',
  ],
  setting: ['The server does not take these settings.'],
  idle_timeout: ['The server heard nothing for too long.', 'Did this page sleep in the background? Start again.'],
  session_timeout: ['The stream lasted as long as one may.', 'Start again.'],
  too_slow: ['This browser or its network does not take the answers fast enough.', 'Try fewer levels, or encode only.'],
  internal: ['The server failed.', 'Please report it; its log says more.'],
};

/** Something does not go on. `code` names it; the rest is for a person. */
export class Refusal extends Error {
  /**
   * @param {string} code a key of the table above, or a code of the server
   * @param {string} [detail] what exactly was found
   * @param {string} [headline] where the table has none
   */
  constructor(code, detail = '', headline = code) {
    super(detail);
    this.code = code;
    this.detail = detail;
    this.headline = WORDS[code]?.[0] ?? headline;
    this.advice = WORDS[code]?.[1] ?? '';
  }
}

/**
 * Say why a connection ended that should not have.
 * @param {Ending} ending
 * @param {Access} access
 * @returns {Promise<Refusal>}
 */
export async function refusalOf(ending, access) {
  if (ending.error) {
    return new Refusal(ending.error.code, ending.error.message, ending.error.reason);
  }
  if (ending.wasReady) {
    return new Refusal('lost', `Close code ${ending.closeCode}.`);
  }
  // A browser does not tell why a handshake failed; these two answers do: one asks for a key, the other tells of a drain.
  try {
    for (const path of ['v1/info', 'readyz']) {
      const answer = await access.fetch(path);
      if (!answer.ok) {
        return await refusalOfAnswer(answer);
      }
    }
    return new Refusal('refused', `Close code ${ending.closeCode}.`);
  } catch {
    return new Refusal('unreachable');
  }
}

/**
 * Say why a REST call was refused.
 * @param {Response} answer
 * @returns {Promise<Refusal>}
 */
export async function refusalOfAnswer(answer) {
  const body = await answer.json().catch(() => ({}));
  if (body.draining) {
    return new Refusal('draining');
  }
  if (body.self_test && body.self_test !== 'passed') {
    return new Refusal('internal', `Self-test: ${body.self_test}`);
  }
  return new Refusal(body.error?.code ?? 'refused', body.error?.message ?? `HTTP ${answer.status}.`, body.error?.reason);
}
