// One connection to PostgreSQL that is to be there as long as this central: the server is asked for a sign of life, and the connection is made again when it has ended.

import type pg from "pg";
import { sleep } from "../../../base/wait.ts";
import { backoffMs, type Backoff } from "../../../core/backoff.ts";
import type { PostgresLimits } from "./postgres-pool.ts";

const plainPing: KeptPing = {
  everyMs: 5_000,
  ask: async (client) => void (await client.query("SELECT 1")),
};
/** For such a connection: a way that is silently gone is noticed after 15 to 20 s. */
export const keptLimits: PostgresLimits = {
  statementMs: 10_000,
  lockMs: 10_000,
  idleInTransactionMs: 10_000,
};

/** A question, and how often it is asked. */
export type KeptPing = {
  readonly everyMs: number;
  readonly ask: (client: pg.Client) => Promise<void>;
};

export type KeptClientOptions = {
  readonly backoff: Backoff;
  /** In [0, 1). */
  readonly random: () => number;
  /** Asks the server for a sign of life; must reject where there is none. By default it is the plainest question, every 5 s. */
  readonly ping?: KeptPing;
  /** Makes another connection. `later`: it is to be tried again; `never`: there is to be none any more. */
  readonly connect: () => Promise<pg.Client | "later" | "never">;
  /** Called when it ended, at each try that fails, and when there is another one. Must not throw. */
  readonly onState: (state: "lost" | "back", error?: unknown) => void;
};

export class KeptClient implements AsyncDisposable {
  readonly #options: KeptClientOptions;
  readonly #ending = new AbortController();
  readonly #keeping: Promise<void>;
  #current: pg.Client | undefined;

  constructor(first: pg.Client, options: KeptClientOptions) {
    this.#options = options;
    this.#current = first;
    this.#keeping = this.#keep(first);
  }

  /** Undefined while there is none. */
  get current(): pg.Client | undefined {
    return this.#current;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#keeping;
  }

  /** Never rejects. */
  async #keep(first: pg.Client): Promise<void> {
    for (let client: pg.Client | undefined = first; client !== undefined;) {
      const error = await this.#lives(client);
      this.#current = undefined;
      await client.end().catch(() => undefined);
      if (this.#ending.signal.aborted) return;
      this.#options.onState("lost", error);
      client = await this.#again();
      this.#current = client;
      if (client !== undefined) this.#options.onState("back");
    }
  }

  /** Resolves with the reason when the connection has ended, or when this central ends. */
  async #lives(client: pg.Client): Promise<unknown> {
    const over = new AbortController();
    client.once("end", () => over.abort());
    const stop = AbortSignal.any([this.#ending.signal, over.signal]);
    const { everyMs, ask } = this.#options.ping ?? plainPing;
    try {
      while (await sleep(everyMs, stop)) await ask(client);
      return new Error("the connection ended");
    } catch (error) {
      return error;
    }
  }

  /** Connects until that succeeds; undefined: this central ends, or there is to be none any more. */
  async #again(): Promise<pg.Client | undefined> {
    const { backoff, random, connect, onState } = this.#options;
    for (let attempt = 0; ; attempt++) {
      const waitMs = backoffMs(attempt, random(), backoff);
      if (!(await sleep(waitMs, this.#ending.signal))) return undefined;
      try {
        const client = await connect();
        if (client === "never") return undefined;
        if (client !== "later") return client;
      } catch (error) {
        onState("lost", error);
      }
    }
  }
}
