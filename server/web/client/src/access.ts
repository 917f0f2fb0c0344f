/** Addresses of a service, and the way in to one that asks for a key. */

import { refusalOfAnswer, refuse } from './errors.ts';

const STREAM_PATH = '/v1/stream';

/**
 * The WebSocket address of a service.
 *
 * Throws `setting`: it is no such address.
 *
 * @param url `ws://`, `wss://`, `http://` or `https://`; without a path, the usual one is added
 * @param token goes into the query
 */
export function streamUrl(url: string | URL, token = ''): URL {
  const made = parsed(url);
  made.protocol = made.protocol.replace('http', 'ws');
  made.pathname = made.pathname === '/' ? STREAM_PATH : made.pathname;
  if (token) {
    made.searchParams.set('token', token);
  }
  return made;
}

/** The address of another path of the same service, however deep it is mounted. */
export function serviceUrl(url: string | URL, path: string): URL {
  const made = parsed(url);
  made.protocol = made.protocol.replace('ws', 'http');
  made.pathname = made.pathname.replace(/\/v1\/stream$/, '/').replace(/\/*$/, `/${path}`);
  made.search = '';
  return made;
}

/** Headers that show a key; those of UTF-8 go as its bytes. */
export function keyHeaders(key: string | undefined): Record<string, string> {
  return key ? { Authorization: `Bearer ${String.fromCharCode(...new TextEncoder().encode(key))}` } : {};
}

/**
 * Get a short-lived token for a key: what a browser puts into the query of a handshake, which takes no headers.
 *
 * Throws `unauthorized`: the key is not one of the service's; `unavailable`: no service answers.
 *
 * @param scope what it shall be good for: `stream`, `convert`, `info`, comma-separated
 */
export async function requestToken(url: string | URL, key: string, scope = 'stream'): Promise<string> {
  const address = serviceUrl(url, 'v1/token');
  address.searchParams.set('scope', scope);
  let answer: Response;
  try {
    answer = await fetch(address, { method: 'POST', headers: keyHeaders(key), cache: 'no-store' });
  } catch (cause) {
    throw unreachable(url, cause);
  }
  if (!answer.ok) {
    throw await refusalOfAnswer(answer);
  }
  const body = (await answer.json()) as { token: string };
  return body.token;
}

/** The error for a service that is not there. The query of an address may hold a token, and is left out. */
export function unreachable(url: string | URL, cause: unknown) {
  const found = cause instanceof Error ? cause.message : String(cause);
  return refuse('unavailable', String(url).split('?', 1)[0] ?? '', found, 'a service that can be reached');
}

function parsed(url: string | URL): URL {
  try {
    const made = new URL(url);
    if (/^(http|ws)s?:$/.test(made.protocol) && !made.hash) {
      return made;
    }
  } catch {
    // Said below, like every address that is none.
  }
  throw refuse('setting', 'url', `'${url}'`, 'ws://HOST:PORT or wss://HOST:PORT, the path /v1/stream may be left out');
}
