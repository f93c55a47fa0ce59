// What a server must be to hold the store: checked at each new connection, since a server is restarted with other settings while central runs.

import { AccelError } from "../../../core/faults.ts";

export type ServerFacts = {
  /** `server_version_num`: 150004 is 15.4. */
  readonly version: number;
  readonly synchronousCommit: string;
  readonly fsync: string;
  readonly encoding: string;
  /** `c`: of the C library, `i`: of ICU, `b`: PostgreSQL's own. */
  readonly collationProvider: string;
  readonly collation: string;
  readonly isStandby: boolean;
};

export const serverFactsSql = `
  SELECT current_setting('server_version_num') AS version, current_setting('synchronous_commit') AS sync,
    current_setting('fsync') AS fsync, current_setting('server_encoding') AS encoding,
    datlocprovider AS provider, datcollate AS collation, pg_is_in_recovery() AS standby
  FROM pg_database WHERE datname = current_database()
`;
/** Before 15 databases have no provider of collations, so the version is asked by itself. */
export const serverVersionSql = "SHOW server_version_num";

export function serverVersionOf(row: unknown): number {
  return Number(Object(row)["server_version_num"]);
}

/** A standby refuses each SELECT of a SERIALIZABLE connection, and answers this. Since 14. */
export const standbySql = "SHOW in_hot_standby";

/** Parses the row of `serverFactsSql`. */
export function serverFactsOf(row: Readonly<Record<string, unknown>>): ServerFacts {
  const text = (name: string): string => String(row[name]);
  return {
    version: Number(row["version"]),
    synchronousCommit: text("sync"),
    fsync: text("fsync"),
    encoding: text("encoding"),
    collationProvider: text("provider"),
    collation: text("collation"),
    isStandby: row["standby"] === true,
  };
}

const oldest = 15;
/** Each of them sorts as SQLite does: byte by byte. Digests of sets are made in that order. */
const bytewise: ReadonlySet<string> = new Set(["C", "POSIX", "C.UTF-8", "C.utf8"]);

/** Returns why a server of this version cannot hold the store; undefined if it can. */
export function versionFault(version: number, where: string): AccelError | undefined {
  const major = Math.floor(version / 10_000);
  if (major >= oldest) return undefined;
  return unsuited(
    `${where} is PostgreSQL ${major}, and central needs ${oldest} or later`,
    `Upgrade the server, or let \`store.url\` name another one.`,
  );
}

/** A standby may be promoted, so whoever met it comes again. */
export function standbyFault(where: string): AccelError {
  return new AccelError(
    "STORE_UNREACHABLE",
    `${where} is a standby and takes no writes: the URL must lead to the primary`,
    {
      hint: "In a failover it takes writes when it is promoted, and nothing is to be done here. Otherwise let the URL, or the name or address in it, lead to the primary.",
    },
  );
}

/** Returns why the server cannot hold the store; undefined if it can. */
export function serverFault(facts: ServerFacts, where: string): AccelError | undefined {
  const old = versionFault(facts.version, where);
  if (old !== undefined) return old;
  if (facts.isStandby) return standbyFault(where);
  if (facts.synchronousCommit === "off")
    return unsuited(
      `${where} has synchronous_commit = off: orders that central acknowledged would be lost with the server`,
      "Set it to on (or remote_apply with a synchronous standby) in postgresql.conf, and remove it where it is set for this role or database (ALTER ROLE, ALTER DATABASE).",
    );
  if (facts.fsync === "off")
    return unsuited(
      `${where} has fsync = off: after a power failure the store would be damaged`,
      "Set fsync = on in postgresql.conf and restart the server.",
    );
  if (facts.encoding !== "UTF8" || !isBytewise(facts))
    return unsuited(
      `the database of ${where} has the encoding ${facts.encoding} and the collation ${facts.collation}, and central needs UTF8 and C`,
      "Make the database anew: CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'.",
    );
  return undefined;
}

function isBytewise({ collationProvider, collation }: ServerFacts): boolean {
  if (collationProvider === "b") return true;
  return collationProvider === "c" && bytewise.has(collation);
}

function unsuited(text: string, hint: string): AccelError {
  return new AccelError("STORE_UNSUITED", text, { hint });
}
