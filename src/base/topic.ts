// News that one part tells and others hear, for parts that are made before their listeners.

export class Topic<T> {
  readonly #listeners = new Set<(news: T) => void>();

  /** Calls the listener for everything from now on until it is disposed. It must not throw. */
  follow(listener: (news: T) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Calls the listeners at once, in the order in which they came. Without any, the news is lost. */
  tell(news: T): void {
    for (const listener of this.#listeners) listener(news);
  }
}
