// Where the database of request logs is, as it is told to threads, and what its server must be.

import { AccelError, messageOf, systemCode } from "../../../core/faults.ts";
import { readPassword } from "../../settings/password-file.ts";
import { placeText, type PostgresPlace } from "../../store/engine/postgres-place.ts";
import { postgresTrouble } from "../../store/engine/postgres-faults.ts";
import {
  serverFactsOf,
  serverFactsSql,
  serverVersionOf,
  serverVersionSql,
  type ServerFacts,
} from "../../store/engine/postgres-server.ts";

/** What can be told to a thread. The password is read in the thread, at each connection. */
export type LogDatabase = Omit<PostgresPlace, "password" | "connections"> & {
  readonly passwordFile: string | undefined;
};

/** What the thread that asks the server and the one that waits share: how many answers there were, and whether the first has ended. */
export const signals = { count: 0, ended: 1 } as const;

/** The limits of one statement, in milliseconds. A batch waits for the batches of other centrals that came before. */
export const logLimits = { statementMs: 30_000, lockMs: 10_000, idleInTransactionMs: 60_000 };

/**
 * Settings of each connection. A plan for any values would read whole days for the newest rows of a domain; so would a bitmap
 * of a day that PostgreSQL has not analyzed yet, where it expects a few rows and sorts all (180 ms instead of 10).
 */
export const logConnectionSettings = [
  "plan_cache_mode=force_custom_plan",
  "enable_bitmapscan=off",
  "default_transaction_isolation=read committed",
  "search_path=public",
];

/** Names the database in messages; it holds no secret. */
export function logPlaceText(database: LogDatabase): string {
  return placeText(logPlaceOf(database));
}

/** One connection at a time. */
export function logPlaceOf({ passwordFile, ...place }: LogDatabase): PostgresPlace {
  return {
    ...place,
    connections: 1,
    password: () => readPassword("request_logs.password_file", passwordFile),
  };
}

type Ask = (text: string) => Promise<readonly unknown[]>;

const rightsSql = "SELECT has_schema_privilege('public', 'CREATE') AS may_create";

/** Throws LOGS_UNSUITED for a server, a database or a role that cannot hold request logs. */
export async function judgeLogServer(ask: Ask, where: string): Promise<void> {
  const [version] = await ask(serverVersionSql);
  const old = versionFault(serverVersionOf(version), where);
  if (old !== undefined) throw old;
  const [facts] = await ask(serverFactsSql);
  const [rights] = await ask(rightsSql);
  const mayCreate = Object(rights)["may_create"] === true;
  const fault = logServerFault(serverFactsOf(Object(facts)), mayCreate, where);
  if (fault !== undefined) throw fault;
}

const oldest = 15;

function versionFault(version: number, where: string): AccelError | undefined {
  const major = Math.floor(version / 10_000);
  if (major >= oldest) return undefined;
  return unsuited(
    `${where} is PostgreSQL ${major}, and request logs need ${oldest} or later`,
    "Upgrade the server, or let `request_logs.url` name another one.",
  );
}

/** Returns why a server cannot hold request logs; undefined if it can. Texts are compared as bytes, so that any collation will do. */
export function logServerFault(
  facts: ServerFacts,
  mayCreate: boolean,
  where: string,
): AccelError | undefined {
  if (facts.isStandby)
    return unavailable(
      `${where} is a standby and takes no writes; \`request_logs.url\` must lead to the primary`,
    );
  if (facts.synchronousCommit === "off")
    return unsuited(
      `${where} has synchronous_commit = off: records that agents have forgotten would be lost with the server`,
      "Set it to on in postgresql.conf, and remove it where it is set for this role or database (ALTER ROLE, ALTER DATABASE).",
    );
  if (facts.fsync === "off")
    return unsuited(
      `${where} has fsync = off: after a power failure request logs would be damaged`,
      "Set fsync = on in postgresql.conf and restart the server.",
    );
  if (facts.encoding !== "UTF8")
    return unsuited(
      `the database of ${where} has the encoding ${facts.encoding}, and request logs need UTF8`,
      "Make the database anew: CREATE DATABASE … TEMPLATE template0 ENCODING 'UTF8'.",
    );
  if (!mayCreate)
    return unsuited(
      `the role of ${where} may not make tables in the schema public`,
      "Let the role own the database, or GRANT CREATE ON SCHEMA public to it: a table is made for each day.",
    );
  return undefined;
}

function unsuited(text: string, hint: string): AccelError {
  return new AccelError("LOGS_UNSUITED", text, { hint });
}

/** SQLSTATE classes in which the server refuses this program: 28 of its password, 3D of its database, 42501 of its rights. */
const refusals = /^(?:28|3D|42501$)/;

/** The error as whoever asks for request logs is told. `where` names server and database, and no secret. */
export function logFault(error: unknown, where: string): AccelError {
  if (error instanceof AccelError) return error;
  const trouble = postgresTrouble(error);
  const said = messageOf(error);
  const of = `the database of request logs ${where}`;
  if (trouble === "away") return unavailable(`${of} does not answer: ${said}`);
  if (trouble !== undefined) return unavailable(`${of} is overloaded: ${said}`);
  if (refusals.test(systemCode(error) ?? ""))
    return new AccelError("LOGS_UNSUITED", `${of} refuses central: ${said}`);
  return unavailable(`${of}: ${said}`);
}

function unavailable(text: string): AccelError {
  return new AccelError("LOGS_UNAVAILABLE", text, {
    hint: "Look at the PostgreSQL that `request_logs.url` names, its log, and the network there. Central goes on by itself when it answers, and agents keep their records meanwhile.",
  });
}
