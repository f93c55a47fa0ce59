// A PostgreSQL that is silent: it is frozen, or the way to it is gone and nothing says so.
//
// The connection that holds the store finds out first, since any server that lives answers at once what is asked there. Whatever waits on the other connections ends with it. A statement
// has its minute, and its connection can tell only behind that.

/** Why a connection was ended over which nothing came. */
export class PostgresSilent extends Error {
  constructor(silentMs: number) {
    super(`PostgreSQL did not answer for ${silentMs / 1_000} s`);
  }
}

export class PostgresSilence {
  #current = new AbortController();

  /** Aborts with a PostgresSilent at the next silence. Connections that are made behind that one need another signal. */
  get signal(): AbortSignal {
    return this.#current.signal;
  }

  /** Why the holding connection ended. Any other reason than silence means nothing for the other connections. */
  holdEnded(error: unknown): void {
    if (!(error instanceof PostgresSilent)) return;
    const before = this.#current;
    this.#current = new AbortController();
    before.abort(error);
  }
}
