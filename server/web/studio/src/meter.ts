const FLOOR_DB = -60;
const HOLD_MS = 1_500;
const SHOW_MS = 100;
const CLIPPED = 32_767;

/** A level meter: a bar for the mean, a line for the peak held, and both in words. */
export class Meter {
  #root: HTMLElement;
  #words: HTMLElement;
  #sum = 0;
  #count = 0;
  #peak = 0;
  #shownAtMs = 0;
  #held = { db: FLOOR_DB, atMs: 0 };
  #clippedAtMs = -HOLD_MS;

  /** @param root with children .meter-bar and .meter-peak */
  constructor(root: HTMLElement, words: HTMLElement) {
    this.#root = root;
    this.#words = words;
    this.clear();
  }

  push(samples: Int16Array, nowMs: number): void {
    for (const value of samples) {
      this.#sum += value * value;
      this.#peak = Math.max(this.#peak, Math.abs(value));
    }
    this.#count += samples.length;
    if (nowMs - this.#shownAtMs >= SHOW_MS) {
      this.#update(nowMs);
    }
  }

  /** Back to silence. */
  clear(): void {
    this.#held = { db: FLOOR_DB, atMs: 0 };
    this.#show(FLOOR_DB, false);
    this.#words.textContent = 'silence';
  }

  #update(nowMs: number): void {
    const meanDb = decibels(Math.sqrt(this.#sum / Math.max(1, this.#count)));
    const peakDb = decibels(this.#peak);
    if (peakDb >= this.#held.db || nowMs - this.#held.atMs > HOLD_MS) {
      this.#held = { db: peakDb, atMs: nowMs };
    }
    this.#clippedAtMs = this.#peak >= CLIPPED ? nowMs : this.#clippedAtMs;
    this.#show(meanDb, nowMs - this.#clippedAtMs < HOLD_MS);
    this.#shownAtMs = nowMs;
    this.#sum = this.#count = this.#peak = 0;
  }

  #show(meanDb: number, isClipped: boolean): void {
    const words = `${inWords(meanDb)}, peak ${inWords(this.#held.db)}${isClipped ? ', clipped' : ''}`;
    const [bar, peak] = ['.meter-bar', '.meter-peak'].map((name) => this.#root.querySelector<HTMLElement>(name));
    if (bar && peak) {
      bar.style.transform = `scaleX(${share(meanDb)})`;
      peak.style.left = `${100 * share(this.#held.db)}%`;
    }
    this.#root.classList.toggle('clipped', isClipped);
    this.#root.setAttribute('aria-valuenow', String(Math.round(meanDb)));
    this.#root.setAttribute('aria-valuetext', words);
    this.#words.textContent = words;
  }
}

function decibels(amplitude: number): number {
  return Math.max(FLOOR_DB, 20 * Math.log10(Math.max(amplitude, 1e-9) / 32768));
}

function share(db: number): number {
  return (db - FLOOR_DB) / -FLOOR_DB;
}

function inWords(db: number): string {
  return db <= FLOOR_DB ? 'silence' : `${Math.round(db)} dB`;
}
