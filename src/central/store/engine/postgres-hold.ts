// Who may be at one PostgreSQL: a lock that the server keeps as long as a connection lives.
//
// A central that is set to be the only one holds it alone, and a second one is refused at its start. Those that are set to be several share it, and so keep out who would be
// alone: such a central, and the commands that need all of them stopped. One whose connection ended takes the lock again as soon as it can; if another has it by then, it
// stops.

import { setTimeout as sleepFor } from "node:timers/promises";
import pg from "pg";
import { AccelError } from "../../../core/faults.ts";
import type { Backoff } from "../../../core/backoff.ts";
import { KeptClient, type KeptPing } from "./kept-client.ts";
import { postgresFault } from "./postgres-faults.ts";
import { placeText, type PostgresPlace } from "./postgres-place.ts";
import { clientConfig, earlyFault, type PostgresLimits } from "./postgres-pool.ts";
import type { PostgresSilence } from "./postgres-silence.ts";
import {
  sessionName,
  SilentSessions,
  silentLookMs,
  type EndedSessions,
} from "./silent-sessions.ts";

/** "accel" and "hold", as two numbers that nothing else here uses. */
const lockKeys = "7301, 1";
/** A predecessor on a host that was switched off is noticed by its server after 25 s (`tcpSettings`). */
const patienceMs = 40_000;
const askAgainMs = 500;
/** This connection finds out first that the way is silently gone: 15 s after a look, so that the warning is there within 20 s. */
const limits: PostgresLimits = { statementMs: 5_000, lockMs: 5_000, idleInTransactionMs: 5_000 };
const backoff: Backoff = { firstMs: 200, mostMs: 5_000 };
/** What makes the server notice that this host is gone. */
const tcpSettings =
  "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3";

export type StoreHoldOptions = {
  readonly place: PostgresPlace;
  readonly random: () => number;
  /** Called when the connection ended and when the lock is held again; must not throw. */
  readonly onChange: (state: "lost" | "held", error?: unknown) => void;
  /** Called once, when another has the lock: this central must stop. */
  readonly onTaken: (error: AccelError) => void;
  /** Returns why a server must not be used that has the lock to give, such as a former primary. */
  readonly admit?: (client: pg.ClientBase) => Promise<Error | undefined>;
  readonly patienceMs?: number;
  /** Whether others may hold it as well that say the same; false if absent. */
  readonly isShared?: boolean;
  /** The id of the central that holds it; absent for a command. One that shares it ends the transactions of others that are silent. */
  readonly central?: string;
  /** Ends the connection when it aborts, and lets no other one be made. */
  readonly cut?: AbortSignal | undefined;
  /** Is told why the connection ended, for those of a pool beside it. */
  readonly silence?: Pick<PostgresSilence, "holdEnded"> | undefined;
  /** Called when it has ended some; must not throw. */
  readonly onEnded?: (ended: EndedSessions) => void;
};

type Locked =
  | { readonly kind: "ours" }
  /** Our own connection of before, whose end the server had not noticed; or one that just ended. The lock is free in a moment. */
  | { readonly kind: "gone"; readonly who: string }
  | { readonly kind: "another's"; readonly who: string };

export class StoreHold implements AsyncDisposable {
  readonly #options: StoreHoldOptions;
  #backend: number | undefined;
  #kept: KeptClient | undefined;

  private constructor(options: StoreHoldOptions) {
    this.#options = options;
  }

  /** Throws STORE_TAKEN, and what connecting throws. */
  static async take(options: StoreHoldOptions): Promise<StoreHold> {
    const hold = new StoreHold(options);
    const client = await hold.#connect();
    const endMs = performance.now() + (options.patienceMs ?? patienceMs);
    try {
      for (;;) {
        const locked = await hold.#lock(client);
        if (locked.kind === "ours") break;
        if (performance.now() >= endMs) throw hold.#taken(locked.who);
        await sleepFor(askAgainMs);
      }
    } catch (error) {
      await client.end();
      throw error instanceof AccelError ? error : postgresFault(error, hold.#where);
    }
    const { random, onChange, silence } = options;
    const ping = silencePing(options);
    hold.#kept = new KeptClient(client, {
      ...(ping !== undefined && { ping }),
      backoff,
      random,
      connect: async () => hold.#again(),
      onState: (state, error) => {
        silence?.holdEnded(error);
        onChange(state === "back" ? "held" : "lost", error);
      },
    });
    return hold;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#kept?.[Symbol.asyncDispose]();
  }

  get #where(): string {
    return placeText(this.#options.place);
  }

  async #connect(): Promise<pg.Client> {
    const { place, central, cut } = this.#options;
    const config = clientConfig({ place, limits, cut });
    const client = new pg.Client({
      ...config,
      application_name: sessionName(central, "hold"),
      options: `${config.options} ${tcpSettings}`,
    });
    // Without a listener the end of the connection would end the process; KeptClient finds out by itself.
    client.on("error", () => undefined);
    try {
      await client.connect();
      const refused =
        (await earlyFault(client, this.#where)) ?? (await this.#options.admit?.(client));
      if (refused !== undefined) throw refused;
    } catch (error) {
      await client.end().catch(() => undefined);
      throw postgresFault(error, this.#where);
    }
    return client;
  }

  async #lock(client: pg.Client): Promise<Locked> {
    const isShared = this.#options.isShared === true;
    const lock = isShared ? "pg_try_advisory_lock_shared" : "pg_try_advisory_lock";
    const { rows } = await client.query<{ locked: boolean; backend: number }>(
      `SELECT ${lock}(${lockKeys}) AS locked, pg_backend_pid() AS backend`,
    );
    if (rows[0]?.locked === true) {
      this.#backend = rows[0].backend;
      return { kind: "ours" };
    }
    const { rows: others } = await client.query<{ pid: number; who: string }>(`
      SELECT pid, concat_ws(' ', coalesce(client_addr::text, 'on the server itself'), 'since', backend_start) AS who
      FROM pg_locks JOIN pg_stat_activity USING (pid)
      WHERE locktype = 'advisory' AND granted AND (classid, objid) = (${lockKeys})
        AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    `);
    const [other] = others;
    // It ended between the two questions.
    if (other === undefined) return { kind: "gone", who: "one that ends" };
    if (other.pid !== this.#backend) return { kind: "another's", who: other.who };
    await client.query("SELECT pg_terminate_backend($1)", [other.pid]);
    return { kind: "gone", who: other.who };
  }

  #taken(other: string): AccelError {
    return new AccelError("STORE_TAKEN", `another central uses the store ${this.#where}: ${other}`);
  }

  /** Connects and takes the lock. */
  async #again(): Promise<pg.Client | "later" | "never"> {
    const client = await this.#connect();
    try {
      const locked = await this.#lock(client);
      if (locked.kind === "ours") return client;
      await client.end();
      if (locked.kind === "gone") return "later";
      this.#options.onTaken(this.#taken(locked.who));
      return "never";
    } catch (error) {
      await client.end().catch(() => undefined);
      throw error;
    }
  }
}

/** One of several asks for the others in place of the plainest question. */
function silencePing({ isShared, central, onEnded }: StoreHoldOptions): KeptPing | undefined {
  if (isShared !== true || central === undefined) return undefined;
  const silent = new SilentSessions(central, onEnded ?? (() => undefined));
  return { everyMs: silentLookMs, ask: async (client) => silent.look(client) };
}
