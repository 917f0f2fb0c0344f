/** One connection to a service: shaken hands, settings agreed or stream resumed. The only module that knows sockets. */

import { keyHeaders, requestToken, serviceUrl, streamUrl, unreachable } from './access.ts';
import { MimiError, closedUnasked, isPassing, refusalOfAnswer, refuse } from './errors.ts';
import { SUBPROTOCOL, type ServerEvent } from './messages.ts';
import type { StreamProtocol } from './protocol.ts';
import type { LineOptions } from './settings.ts';
import { delaysMs } from './timing.ts';
import { deferred } from './waiting.ts';

const DONE = 1000;
const INTERNAL = 1011;
/** Close codes after which the same service, or another in its place, may go on with the stream. */
const GOING_AWAY: readonly number[] = [1001, 1005, 1006, 1012, 1013];
/** Of ours: anything but 1000, so that the service keeps the stream. */
const ABANDONED = 4000;
const OPEN = 1;
/** HTTP statuses that a proxy gives while the service behind it is away. */
const PASSING_STATUSES: readonly number[] = [502, 503, 504];

/** How a connection ended. `isLost` where trying again makes sense; `isDone` where it was closed in order. */
export interface LineEnd {
  error: MimiError;
  isLost: boolean;
  isDone: boolean;
}

export class Line {
  /** Settles once, when the connection is over. */
  readonly ended: Promise<LineEnd>;
  heardAtMs = performance.now();
  #socket: WebSocket;
  #protocol: StreamProtocol;
  #handle: (event: ServerEvent) => void;
  #end: (end: LineEnd) => void = () => {};

  private constructor(socket: WebSocket, protocol: StreamProtocol, handle: (event: ServerEvent) => void) {
    this.#socket = socket;
    this.#protocol = protocol;
    this.#handle = handle;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    socket.binaryType = 'arraybuffer';
    socket.onopen = () => socket.send(protocol.opening());
    // Some platforms throw what nobody listens to; the close that follows tells the same.
    socket.onerror = () => {};
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onclose = ({ code, reason }) => this.#end(endOfLine(code, reason));
  }

  /**
   * Connect, send the first message of the protocol and wait until the service is ready.
   *
   * @param handle is given every event after `ready`
   * @returns the line, or why there is none
   */
  static async open(
    url: string | URL,
    protocol: StreamProtocol,
    options: LineOptions,
    handle: (event: ServerEvent) => void,
  ): Promise<Line | LineEnd> {
    let token: string;
    try {
      token = await tokenFor(url, options);
    } catch (cause) {
      const error = cause instanceof MimiError ? cause : unreachable(url, cause);
      return { error, isLost: isPassing(error) || error.code === 'unavailable', isDone: false };
    }
    const ready = deferred<'ready'>();
    const socket = new options.WebSocket(streamUrl(url, token), SUBPROTOCOL);
    let isOpen = false;
    const line = new Line(socket, protocol, (event) => {
      isOpen ||= event.type === 'ready';
      event.type === 'ready' ? ready.resolve('ready') : handle(event);
    });
    const timer = setTimeout(() => line.abandon(`no answer within ${options.openTimeoutMs} ms`), options.openTimeoutMs);
    const first = await Promise.race([ready.promise, line.ended]);
    clearTimeout(timer);
    if (first === 'ready') {
      return line;
    }
    const neverOpened = !first.error.reason && first.error.code === 'unavailable' && !isOpen;
    return protocol.beginAgain(first.error)
      ? { ...first, isLost: true }
      : neverOpened
        ? await explained(url, options, first)
        : first;
  }

  get bufferedBytes(): number {
    return this.#socket.bufferedAmount;
  }

  get isOpen(): boolean {
    return this.#socket.readyState === OPEN;
  }

  send(message: string | Uint8Array<ArrayBuffer>): void {
    this.#socket.send(message);
  }

  /** Drop the connection so that the service keeps its stream. */
  abandon(found: string): void {
    this.fail(refuse('unavailable', 'connection', found, 'one that lasts until the stream is closed'), true);
  }

  /** End for a reason of ours. */
  fail(error: MimiError, isLost: boolean): void {
    this.#end({ error, isLost, isDone: false });
    this.#socket.onmessage = null;
    this.#socket.close(ABANDONED);
  }

  #receive(data: string | ArrayBuffer): void {
    this.heardAtMs = performance.now();
    try {
      const event = this.#protocol.receive(data, this.heardAtMs);
      if (event?.type === 'error') {
        // Who has something to say was not silent: the line was, or this machine stood still.
        const wasNotIdle = event.error.code === 'idle_timeout' && this.#protocol.outbox.hasUnsent;
        this.#end({ error: event.error, isLost: wasNotIdle || isPassing(event.error), isDone: false });
      } else if (event) {
        this.#handle(event);
      }
    } catch (cause) {
      this.fail(cause instanceof MimiError ? cause : refuse('internal', 'stream', String(cause)), false);
    }
  }
}

/**
 * Try {@link Line.open} until it succeeds, with growing waits that are never shorter than the service asks for. Throws the service's
 * refusal, or why the last try failed.
 *
 * @param cause why there is no connection, if one was lost; then even the first try waits
 * @param isWanted is asked before each try
 */
export async function openWithin(
  limitMs: number,
  url: string | URL,
  protocol: StreamProtocol,
  options: LineOptions,
  handle: (event: ServerEvent) => void,
  cause: LineEnd | null,
  isWanted: () => boolean = () => true,
): Promise<Line> {
  const deadlineMs = performance.now() + limitMs;
  for (const delayMs of delaysMs(options.firstDelayMs, options.longestDelayMs)) {
    if (cause) {
      const waitMs = Math.max(delayMs, cause.error.retryAfterMs ?? 0);
      if (performance.now() + waitMs > deadlineMs || !isWanted()) {
        break;
      }
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
    const opened = await Line.open(url, protocol, options, handle);
    if (opened instanceof Line) {
      return opened;
    }
    if (!opened.isLost) {
      throw opened.error;
    }
    cause = opened;
  }
  throw cause?.error ?? unreachable(url, 'no time to try');
}

async function tokenFor(url: string | URL, { token, key }: LineOptions): Promise<string> {
  if (token !== undefined) {
    return typeof token === 'string' ? token : token();
  }
  return key ? requestToken(url, key) : '';
}

/** Name the end of a connection, by what the other side said last. */
function endOfLine(code: number, reason: string): LineEnd {
  const error = closedUnasked(code, reason);
  // A service that misses our answers to its pings closes with 1011 too, as with a failure, but names no code.
  const isMissed = code === INTERNAL && error.code === 'unavailable';
  return { error, isLost: isMissed || GOING_AWAY.includes(code) || isPassing(error), isDone: code === DONE };
}

/** A platform's WebSocket does not tell why a handshake failed; what the service answers to a request does. */
async function explained(url: string | URL, options: LineOptions, end: LineEnd): Promise<LineEnd> {
  try {
    for (const path of ['readyz', 'v1/info']) {
      const answer = await fetch(serviceUrl(url, path), {
        cache: 'no-store',
        headers: keyHeaders(options.key),
        signal: AbortSignal.timeout(options.openTimeoutMs),
      });
      if (!answer.ok && !(path === 'v1/info' && options.token)) {
        const error = await refusalOfAnswer(answer);
        return { error, isLost: isPassing(error) || PASSING_STATUSES.includes(answer.status), isDone: false };
      }
    }
    const error = refuse(
      'unavailable',
      'handshake',
      'one that was refused, by a service that answers requests',
      'one that is let through',
    );
    return { ...end, error, isLost: true };
  } catch (cause) {
    return { ...end, error: unreachable(url, cause), isLost: true };
  }
}
