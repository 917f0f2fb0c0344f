/**
 * Input on its way: what is not sent yet, and what was sent and may have to be sent again. No sockets here.
 *
 * A place in the input is the pair (epoch, byte): a reset starts a new epoch at byte 0. Control messages stand between the bytes
 * they were given between, and are sent again with them.
 */

import { refuse } from './errors.ts';

export type ControlKind = 'flush' | 'reset' | 'close';

/** A control message at its place. `ordinal` counts the flushes of the epoch, from 1; 0 for other kinds. */
export interface Control {
  kind: ControlKind;
  epoch: number;
  byte: number;
  ordinal: number;
}

/** Bytes of input that begin at a place. */
export interface Chunk {
  kind: 'chunk';
  epoch: number;
  byte: number;
  data: Uint8Array<ArrayBuffer>;
}

export type Entry = Chunk | Control;

/** A log of input with a cursor between what is sent and what is not. */
export class Outbox {
  /** Size of what positions count: a sample of all channels, or a frame of codes. */
  readonly unitBytes: number;
  /** Bytes that wait to be sent. */
  unsentBytes = 0;
  /** Bytes that were sent and are kept. */
  heldBytes = 0;
  #keeps: boolean;
  #maxHeldBytes: number;
  #entries: Entry[] = [];
  #cursor = 0;
  #end = { epoch: 0, byte: 0 };
  #start = { epoch: 0, byte: 0 };
  #flushes = 0;

  /**
   * @param keeps whether what was sent is kept until {@link release}
   * @param maxHeldBytes most bytes kept that were sent; beyond it the oldest are forgotten
   */
  constructor(unitBytes: number, { keeps, maxHeldBytes }: { keeps: boolean; maxHeldBytes: number }) {
    this.unitBytes = unitBytes;
    this.#keeps = keeps;
    this.#maxHeldBytes = maxHeldBytes;
  }

  get hasUnsent(): boolean {
    return this.#cursor < this.#entries.length;
  }

  /** Whether everything that was ever appended is still here. */
  get isWhole(): boolean {
    return this.#start.epoch === 0 && this.#start.byte === 0;
  }

  append(data: Uint8Array<ArrayBuffer>): void {
    if (data.length > 0) {
      this.#entries.push({ kind: 'chunk', ...this.#end, data });
      this.#end.byte += data.length;
      this.unsentBytes += data.length;
    }
  }

  /** Add a control message; after a reset the input begins anew. */
  appendControl(kind: ControlKind): void {
    this.#flushes += kind === 'flush' ? 1 : 0;
    this.#entries.push({ kind, ...this.#end, ordinal: kind === 'flush' ? this.#flushes : 0 });
    if (kind === 'reset') {
      this.#end = { epoch: this.#end.epoch + 1, byte: 0 };
      this.#flushes = 0;
    }
  }

  /** What is to be sent next, at most so many bytes of it. */
  peek(mostBytes: number): Entry | undefined {
    const entry = this.#entries[this.#cursor];
    if (entry?.kind === 'chunk' && entry.data.length > mostBytes) {
      this.#split(this.#cursor, mostBytes);
    }
    return this.#entries[this.#cursor];
  }

  /** Count what {@link peek} returned as sent. */
  advance(): void {
    const entry = this.#entries[this.#cursor];
    this.#cursor += 1;
    if (entry?.kind === 'chunk') {
      this.unsentBytes -= entry.data.length;
      this.heldBytes += entry.data.length;
    }
    if (!this.#keeps) {
      this.#forget(this.#cursor);
    } else if (this.heldBytes > this.#maxHeldBytes) {
      this.#forget(1);
    }
  }

  /** Forget what lies before a position that is safe. A control message at the very place is kept: it may not be. */
  release(epoch: number, units: number): void {
    const place = { epoch, byte: units * this.unitBytes };
    if (compare(place, this.#start) <= 0) {
      return;
    }
    let count = 0;
    for (
      let entry = this.#entries[count];
      entry && count < this.#cursor && isBefore(entry, place);
      entry = this.#entries[count]
    ) {
      count += 1;
    }
    const entry = this.#entries[count];
    if (count < this.#cursor && entry?.kind === 'chunk' && compare(entry, place) < 0) {
      this.#split(count, place.byte - entry.byte);
      this.#cursor += 1;
      count += 1;
    }
    this.#forget(count);
  }

  /**
   * Go back to what a service holds: everything after it counts as not sent.
   *
   * Throws `unavailable` if input that it lacks was forgotten, `internal` if nobody has that input yet.
   *
   * @param epoch the service's, the same or a later one
   * @param units input of that epoch that it holds
   * @param flushes of that epoch that it has done
   */
  rewind(epoch: number, units: number, flushes: number): void {
    const place = { epoch, byte: units * this.unitBytes };
    if (compare(place, this.#end) > 0) {
      throw refuse('internal', 'resume', `a position behind the input, ${units}`, 'at most its end');
    }
    if (compare(place, this.#start) < 0) {
      throw refuse(
        'unavailable',
        'resume',
        `input from ${units} of epoch ${epoch} asked for again, which is forgotten`,
        'more room (maxHeldBytes)',
      );
    }
    this.#cursor = this.#firstLacking(place, flushes);
    const bytes = (entries: Entry[]) =>
      entries.reduce((sum, entry) => sum + (entry.kind === 'chunk' ? entry.data.length : 0), 0);
    this.heldBytes = bytes(this.#entries.slice(0, this.#cursor));
    this.unsentBytes = bytes(this.#entries.slice(this.#cursor));
  }

  #firstLacking(place: { epoch: number; byte: number }, flushes: number): number {
    for (let index = 0; index < this.#entries.length; index += 1) {
      const entry = this.#entries[index] as Entry;
      if (entry.kind === 'chunk') {
        if (compare(endOf(entry), place) > 0) {
          const held = compare(entry, place) < 0 ? place.byte - entry.byte : 0;
          if (held > 0) {
            this.#split(index, held);
          }
          return index + (held > 0 ? 1 : 0);
        }
      } else if (!(entry.epoch < place.epoch || (entry.kind === 'flush' && entry.ordinal <= flushes))) {
        return index;
      }
    }
    return this.#entries.length;
  }

  #split(index: number, at: number): void {
    const entry = this.#entries[index];
    if (entry?.kind === 'chunk') {
      const first = { ...entry, data: entry.data.subarray(0, at) };
      const rest = { ...entry, byte: entry.byte + at, data: entry.data.subarray(at) };
      this.#entries.splice(index, 1, first, rest);
    }
  }

  #forget(count: number): void {
    for (const entry of this.#entries.splice(0, count)) {
      if (entry.kind === 'chunk') {
        this.heldBytes -= entry.data.length;
        this.#start = endOf(entry);
      } else if (entry.kind === 'reset') {
        this.#start = { epoch: entry.epoch + 1, byte: 0 };
      }
    }
    this.#cursor -= count;
  }
}

interface Place {
  epoch: number;
  byte: number;
}

function compare(one: Place, other: Place): number {
  return one.epoch - other.epoch || one.byte - other.byte;
}

function endOf(entry: Chunk): Place {
  return { epoch: entry.epoch, byte: entry.byte + entry.data.length };
}

function isBefore(entry: Entry, place: Place): boolean {
  return entry.kind === 'chunk' ? compare(endOf(entry), place) <= 0 : compare(entry, place) < 0;
}
