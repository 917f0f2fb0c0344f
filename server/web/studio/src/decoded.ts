/** A take's sound at other numbers of levels: asked for when it is wanted, and kept. */

import type { Service } from './service.ts';
import { Sound, type Take } from './take.ts';

const WAIT_MS = 120;
const MOST_KEPT = 8;

export class Decoded {
  #service: Service;
  #take: Take;
  #kept = new Map<number, Sound>();
  #running: AbortController | null = null;

  constructor(service: Service, take: Take) {
    this.#service = service;
    this.#take = take;
  }

  /** What is known already, as of the levels that were heard while the take was made. */
  keep(levels: number, sound: Sound): void {
    this.#kept.delete(levels);
    this.#kept.set(levels, sound);
    for (const oldest of [...this.#kept.keys()].slice(0, Math.max(0, this.#kept.size - MOST_KEPT))) {
      this.#kept.delete(oldest);
    }
  }

  /** The sound of so many levels; `null` if other levels were asked for meanwhile. */
  async at(levels: number): Promise<Sound | null> {
    this.#running?.abort();
    const known = this.#kept.get(levels);
    if (known) {
      return known;
    }
    const running = new AbortController();
    this.#running = running;
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    try {
      if (running.signal.aborted) {
        return null;
      }
      const sound = Sound.of(await this.#service.decode(this.#take.codes(levels), running.signal));
      this.keep(levels, sound);
      return sound;
    } catch (cause) {
      if (running.signal.aborted) {
        return null;
      }
      throw cause;
    }
  }
}
