// Notices between the processes at one PostgreSQL: LISTEN and NOTIFY on a connection of its own.
//
// A notice is sent after the commit of what it tells about and never in that transaction: PostgreSQL lets commits that notify pass one at a time, and holds that lock while
// it waits for a synchronous standby. What is sent while there is no connection is lost, and so is what others send meanwhile: `onState` tells both ends.

import pg from "pg";
import { sleep } from "../../../base/wait.ts";
import { backoffMs, type Backoff } from "../../../core/backoff.ts";
import { postgresFault } from "./postgres-faults.ts";
import { placeText, type PostgresPlace } from "./postgres-place.ts";
import { clientConfig, type PostgresLimits } from "./postgres-pool.ts";

/** One NOTIFY. PostgreSQL takes texts below 8,000 bytes. */
export type PostgresNotice = { readonly channel: string; readonly text: string };

export type PostgresNoticesOptions = {
  readonly place: PostgresPlace;
  /** In [0, 1). */
  readonly random: () => number;
  /** Names of channels: letters, digits and underscores. */
  readonly channels: readonly string[];
  /** Must not throw. */
  readonly onNotice: (text: string) => void;
  /** Called when the connection ended, and when there is another: what was sent in between is lost. Must not throw. */
  readonly onState: (state: "lost" | "back", error?: unknown) => void;
};

/** The server is asked for a sign of life this often: a way that is silently gone is found after some 15 s. */
const pingMs = 5_000;
const limits: PostgresLimits = { statementMs: 10_000, lockMs: 10_000, idleInTransactionMs: 10_000 };
const backoff: Backoff = { firstMs: 100, mostMs: 5_000 };

export class PostgresNotices implements AsyncDisposable {
  readonly #options: PostgresNoticesOptions;
  readonly #ending = new AbortController();
  #client: pg.Client | undefined;
  #keeping: Promise<void> = Promise.resolve();

  private constructor(options: PostgresNoticesOptions) {
    this.#options = options;
  }

  /** Connects and listens. Throws what connecting throws. */
  static async open(options: PostgresNoticesOptions): Promise<PostgresNotices> {
    const notices = new PostgresNotices(options);
    const client = await notices.#connect();
    notices.#client = client;
    notices.#keeping = notices.#keep(client);
    return notices;
  }

  /** Sends all of them at once. Rejects if that is not known to have succeeded. */
  async send(notices: readonly PostgresNotice[]): Promise<void> {
    const client = this.#client;
    if (client === undefined) throw new Error("the connection for notices is lost");
    const channels = notices.map(({ channel }) => channel);
    const texts = notices.map(({ text }) => text);
    await client.query(
      "SELECT pg_notify(channel, text) FROM unnest($1::text[], $2::text[]) AS notices (channel, text)",
      [channels, texts],
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort();
    await this.#keeping;
  }

  async #connect(): Promise<pg.Client> {
    const { place, channels, onNotice } = this.#options;
    const client = new pg.Client({
      ...clientConfig({ place, limits }),
      application_name: "accel-central bus",
    });
    // Without a listener the end of the connection would end the process; `#keep` finds out by itself.
    client.on("error", () => undefined);
    client.on("notification", ({ payload }) => onNotice(payload ?? ""));
    try {
      await client.connect();
      for (const channel of channels) await client.query(`LISTEN ${channel}`);
    } catch (error) {
      await client.end().catch(() => undefined);
      throw postgresFault(error, placeText(place));
    }
    return client;
  }

  /** Never rejects. */
  async #keep(first: pg.Client): Promise<void> {
    for (let client: pg.Client | undefined = first; client !== undefined;) {
      const error = await this.#lives(client);
      this.#client = undefined;
      await client.end().catch(() => undefined);
      if (this.#ending.signal.aborted) return;
      this.#options.onState("lost", error);
      client = await this.#again();
      this.#client = client;
      if (client !== undefined) this.#options.onState("back");
    }
  }

  /** Resolves with the reason when the connection has ended, or when this central ends. */
  async #lives(client: pg.Client): Promise<unknown> {
    const over = new AbortController();
    client.once("end", () => over.abort());
    const stop = AbortSignal.any([this.#ending.signal, over.signal]);
    try {
      while (await sleep(pingMs, stop)) await client.query("SELECT 1");
      return new Error("the connection ended");
    } catch (error) {
      return error;
    }
  }

  /** Connects until that succeeds; undefined: this central ends. */
  async #again(): Promise<pg.Client | undefined> {
    const { random, onState } = this.#options;
    for (let attempt = 0; ; attempt++) {
      const waitMs = backoffMs(attempt, random(), backoff);
      if (!(await sleep(waitMs, this.#ending.signal))) return undefined;
      try {
        return await this.#connect();
      } catch (error) {
        onState("lost", error);
      }
    }
  }
}
