/** A promise, and what settles it. */
export interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (cause: unknown) => void;
}

export function deferred<T>(): Deferred<T> {
  const made: Partial<Deferred<T>> = {};
  made.promise = new Promise<T>((resolve, reject) => {
    made.resolve = resolve;
    made.reject = reject;
  });
  return made as Deferred<T>;
}

/** A place to wait until something may have changed; everybody who waits is woken, and looks again. */
export class Waiting {
  #next = deferred<void>();

  wait(): Promise<void> {
    return this.#next.promise;
  }

  notify(): void {
    this.#next.resolve();
    this.#next = deferred<void>();
  }
}
