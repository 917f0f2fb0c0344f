// @ts-check

const FLOOR_DB = -60;
const HOLD_MS = 1_500;
const SHOW_MS = 100;
const CLIPPED = 32_767;

/** A level meter: a bar for the mean, a line for the peak held, and both in words. */
export class Meter {
  #root;
  #bar;
  #mark;
  #words;
  #sum = 0;
  #count = 0;
  #peak = 0;
  #shownAtMs = 0;
  #held = { db: FLOOR_DB, atMs: 0 };
  #clippedAtMs = -HOLD_MS;

  /** @param {HTMLElement} root with children .meter-bar and .meter-peak; the element after it is for the words */
  constructor(root) {
    this.#root = root;
    this.#bar = /** @type {HTMLElement} */ (root.querySelector('.meter-bar'));
    this.#mark = /** @type {HTMLElement} */ (root.querySelector('.meter-peak'));
    this.#words = /** @type {HTMLElement} */ (root.nextElementSibling);
    this.clear();
  }

  /**
   * @param {Int16Array} samples the newest
   * @param {number} nowMs
   */
  push(samples, nowMs) {
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
  clear() {
    this.#held = { db: FLOOR_DB, atMs: 0 };
    this.#show(FLOOR_DB, false);
    this.#words.textContent = 'silence';
  }

  /** @param {number} nowMs */
  #update(nowMs) {
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

  /**
   * @param {number} meanDb
   * @param {boolean} clipped
   */
  #show(meanDb, clipped) {
    const words = `${inWords(meanDb)}, peak ${inWords(this.#held.db)}${clipped ? ', clipped' : ''}`;
    this.#bar.style.transform = `scaleX(${share(meanDb)})`;
    this.#mark.style.left = `${100 * share(this.#held.db)}%`;
    this.#root.classList.toggle('clipped', clipped);
    this.#root.setAttribute('aria-valuenow', String(Math.round(meanDb)));
    this.#root.setAttribute('aria-valuetext', words);
    this.#words.textContent = words;
  }
}

/** @param {number} amplitude of 16 bits */
function decibels(amplitude) {
  return Math.max(FLOOR_DB, 20 * Math.log10(Math.max(amplitude, 1e-9) / 32768));
}

/** @param {number} db */
function share(db) {
  return (db - FLOOR_DB) / -FLOOR_DB;
}

/** @param {number} db */
function inWords(db) {
  return db <= FLOOR_DB ? 'silence' : `${Math.round(db)} dB`;
}
