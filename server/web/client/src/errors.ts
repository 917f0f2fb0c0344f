/** Every failure is one class; its `code` says which, by the names that the service, the library and its metrics use. */

import { ERROR_CODES, type ErrorCode } from './error-codes.ts';

/** Refusals that end a connection and leave its stream to be resumed. */
const RESUMABLE: ReadonlySet<string> = new Set(['draining', 'overloaded', 'too_slow']);
const MOST_FACT_CHARS = 600;

/** Facts of an error, as the service sends them. */
export interface ErrorFacts {
  /** What is wrong. */
  subject: string;
  found?: string;
  expected?: string;
  /** One fixed sentence for the code. */
  reason?: string;
  /** What the service asks to wait before the same is tried again; `null` where that makes no sense. */
  retryAfterMs?: number | null;
}

/**
 * Something was refused, by the service or here. `message` reads `subject: found X, expected Y`.
 *
 * A service that is not there, or does not speak `mimi.v1`, is `unavailable`; a call after the end is `session_closed`. A later
 * service may send codes that are not in {@link ERROR_CODES}.
 */
export class MimiError extends Error {
  readonly code: ErrorCode | (string & {});
  readonly subject: string;
  readonly found: string;
  readonly expected: string;
  readonly reason: string;
  readonly retryAfterMs: number | null;

  constructor(
    code: ErrorCode | (string & {}),
    { subject, found = '', expected = '', reason = '', retryAfterMs = null }: ErrorFacts,
  ) {
    const facts = [found && `found ${found}`, expected && `expected ${expected}`].filter(Boolean).join(', ');
    super(facts ? `${subject}: ${facts}` : subject);
    this.name = 'MimiError';
    this.code = code;
    this.subject = subject;
    this.found = found;
    this.expected = expected;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

/** An error of this client's own making. */
export function refuse(code: ErrorCode, subject: string, found = '', expected = ''): MimiError {
  return new MimiError(code, { subject, found, expected });
}

/** Turn the fields of an `error` message, or of a REST error body, into the error they stand for, whatever they hold. */
export function refusal(fields: Record<string, unknown>): MimiError {
  const text = (name: string) => (typeof fields[name] === 'string' ? fields[name].slice(0, MOST_FACT_CHARS) : '');
  const wait = fields['retry_after_ms'];
  return new MimiError(text('code') || 'service', {
    subject: text('subject') || text('message') || 'service',
    found: text('found'),
    expected: text('expected'),
    reason: text('reason'),
    retryAfterMs: Number.isSafeInteger(wait) && (wait as number) >= 0 ? (wait as number) : null,
  });
}

/** Turn an HTTP answer that is no success into an error: the service's own, where the body holds one. */
export async function refusalOfAnswer(answer: Response): Promise<MimiError> {
  const body: unknown = await answer.json().catch(() => null);
  if (isRecord(body) && isRecord(body['error'])) {
    return refusal(body['error']);
  }
  if (isRecord(body) && body['draining'] === true) {
    return new MimiError('draining', { subject: 'service', found: 'one that goes down', retryAfterMs: 0 });
  }
  return refuse('unavailable', 'service', `HTTP status ${answer.status}`, 'a service that speaks mimi.v1 at this address');
}

/** Name the end of a connection for which the service gave no `error` message. */
export function closedUnasked(closeCode: number, reason: string): MimiError {
  if (/^[a-z_]+$/.test(reason)) {
    return refusal({ code: reason, subject: 'connection', found: `closed with ${closeCode}` });
  }
  const found =
    closeCode === 1006 || closeCode === 1005 ? 'a connection that was cut' : `closed with ${closeCode} ${reason}`.trim();
  return refuse('unavailable', 'connection', found, 'one that lasts until the stream is closed');
}

/** Whether an error leaves the stream to be had again, or the same to be tried later. */
export function isPassing(error: MimiError): boolean {
  return RESUMABLE.has(error.code) || error.retryAfterMs !== null;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export { ERROR_CODES, type ErrorCode };
