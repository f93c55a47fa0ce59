// Open transactions of a central that is silent, which another one ends: a central that was cut off without a word, or froze, leaves its locks in PostgreSQL, and all
// others would wait for them until PostgreSQL ends what nobody goes on with, after a minute.
//
// A central is silent whose sessions were all asked nothing at 3 looks in a row. One that lives asks in each look of its own, on the very connection that holds the store, which no
// transaction can keep busy. No clock is compared: what counts is that nothing moved between looks, of which each needs an answer of the server. After the server itself stood
// still the others have spoken by the next look.
//
// Only transactions end. For a central that comes back it is a lost connection. One whose COMMIT waits for a standby is left: it is in force already.

import type pg from "pg";

const programName = "accel-central";

/** What PostgreSQL shows beside a session. `id`: of the central, 16 hexadecimal digits; without it, as of a command, its sessions are ended by nobody. */
export function sessionName(id: string | undefined, what?: string): string {
  return [programName, id, what].filter((part) => part !== undefined).join(" ");
}

export const silentLookMs = 2_000;
/** The looks at which nothing has moved for a central that is silent: 6 s at least, and 8 s at most behind its last word. */
const stillMax = 3;

export type EndedSessions = {
  readonly central: string;
  /** Where its connections come from; null: a socket on the server's host. */
  readonly address: string | null;
  readonly transactions: number;
};

type Heard = { readonly central: string; readonly heard: string; readonly open: number };
type Still = { readonly heard: string; readonly looks: number };

/** Sessions of other roles show neither what they were asked nor a transaction, and so are ended by nobody; so it is where the server tracks no activities. */
const sessionsSql = `
  SELECT pid, client_addr, xact_start, wait_event, greatest(query_start, backend_start) AS heard,
    substring(application_name FROM '^${programName} ([0-9a-f]{16})') AS central
  FROM pg_stat_activity
  WHERE datname = current_database() AND usename = current_user
`;

const lookSql = `
  SELECT central, max(heard)::text AS heard, count(xact_start)::int AS open
  FROM (${sessionsSql}) AS sessions
  WHERE central <> $1
  GROUP BY central
`;

const endSql = `
  SELECT host(min(client_addr)) AS address, count(*) FILTER (WHERE ended)::int AS transactions
  FROM (
    SELECT client_addr, pg_terminate_backend(pid) AS ended
    FROM (SELECT *, max(heard) OVER () AS last FROM (${sessionsSql}) AS all_of_it WHERE central = $1) AS sessions
    WHERE last::text = $2 AND xact_start IS NOT NULL AND wait_event IS DISTINCT FROM 'SyncRep'
  ) AS endings
`;

export class SilentSessions {
  readonly #own: string;
  readonly #onEnded: (ended: EndedSessions) => void;
  #still = new Map<string, Still>();

  /** `own`: the id of this central. `onEnded` must not throw. */
  constructor(own: string, onEnded: (ended: EndedSessions) => void) {
    this.#own = own;
    this.#onEnded = onEnded;
  }

  /** Looks at the sessions of the others, and ends the transactions of those that are silent. Throws what asking throws. */
  async look(client: Pick<pg.ClientBase, "query">): Promise<void> {
    const { rows } = await client.query<Heard>(lookSql, [this.#own]);
    const before = this.#still;
    this.#still = new Map(
      rows.map(({ central, heard }) => {
        const known = before.get(central);
        return [central, { heard, looks: known?.heard === heard ? known.looks + 1 : 0 }];
      }),
    );
    for (const { central, heard, open } of rows) {
      const looks = this.#still.get(central)?.looks ?? 0;
      if (looks >= stillMax && open > 0) await this.#end(client, central, heard);
    }
  }

  async #end(client: Pick<pg.ClientBase, "query">, central: string, heard: string): Promise<void> {
    const { rows } = await client.query<Omit<EndedSessions, "central">>(endSql, [central, heard]);
    const [ended] = rows;
    if (ended !== undefined && ended.transactions > 0) this.#onEnded({ central, ...ended });
  }
}
