// Notices between the processes at one PostgreSQL: LISTEN and NOTIFY on a connection of its own.
//
// A notice is sent after the commit of what it tells about and never in that transaction: PostgreSQL lets commits that notify pass one at a time, and holds that lock while
// it waits for a synchronous standby. What is sent while there is no connection is lost, and so is what others send meanwhile: `onState` tells both ends.

import pg from "pg";
import type { Backoff } from "../../../core/backoff.ts";
import { KeptClient, keptLimits } from "./kept-client.ts";
import { postgresFault } from "./postgres-faults.ts";
import { placeText, type PostgresPlace } from "./postgres-place.ts";
import { clientConfig } from "./postgres-pool.ts";
import { sessionName } from "./silent-sessions.ts";

/** One NOTIFY. PostgreSQL takes texts below 8,000 bytes. */
export type PostgresNotice = { readonly channel: string; readonly text: string };

export type PostgresNoticesOptions = {
  readonly place: PostgresPlace;
  /** The id of the central that opens them. */
  readonly central?: string;
  /** Ends the connection when it aborts, and lets no other one be made. */
  readonly cut?: AbortSignal | undefined;
  /** In [0, 1). */
  readonly random: () => number;
  /** Names of channels: letters, digits and underscores. */
  readonly channels: readonly string[];
  /** Must not throw. */
  readonly onNotice: (text: string) => void;
  /** Called when the connection ended, and when there is another: what was sent in between is lost. Must not throw. */
  readonly onState: (state: "lost" | "back", error?: unknown) => void;
};

const backoff: Backoff = { firstMs: 100, mostMs: 5_000 };

export class PostgresNotices implements AsyncDisposable {
  readonly #options: PostgresNoticesOptions;
  #kept: KeptClient | undefined;

  private constructor(options: PostgresNoticesOptions) {
    this.#options = options;
  }

  /** Connects and listens. Throws what connecting throws. */
  static async open(options: PostgresNoticesOptions): Promise<PostgresNotices> {
    const notices = new PostgresNotices(options);
    const client = await notices.#connect();
    const { random, onState } = options;
    const connect = async (): Promise<pg.Client> => notices.#connect();
    notices.#kept = new KeptClient(client, { backoff, random, connect, onState });
    return notices;
  }

  /** Sends all of them at once. Rejects if that is not known to have succeeded. */
  async send(notices: readonly PostgresNotice[]): Promise<void> {
    const client = this.#kept?.current;
    if (client === undefined) throw new Error("the connection for notices is lost");
    const channels = notices.map(({ channel }) => channel);
    const texts = notices.map(({ text }) => text);
    await client.query(
      "SELECT pg_notify(channel, text) FROM unnest($1::text[], $2::text[]) AS notices (channel, text)",
      [channels, texts],
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kept?.[Symbol.asyncDispose]();
  }

  async #connect(): Promise<pg.Client> {
    const { place, channels, onNotice, central, cut } = this.#options;
    const client = new pg.Client({
      ...clientConfig({ place, limits: keptLimits, cut }),
      application_name: sessionName(central, "bus"),
    });
    // Without a listener the end of the connection would end the process; KeptClient finds out by itself.
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
}
