// What an error of PostgreSQL means for whoever asked: run the unit again, come back later, or a defect.
//
// Only an error that says by itself that nothing was written is run again. When a connection ends during COMMIT, nobody knows whether the transaction is in
// force, so that such a unit is never repeated here: its caller is told, and repeats it with its own means (an `Idempotency-Key`, a receipt that is sent again).

import { AccelError, codeOf, messageOf, systemCode } from "../../../core/faults.ts";

export type PostgresTrouble =
  /** Nothing of the unit is in force; beside fewer others it succeeds. */
  | "again"
  /** A constraint was violated: if another unit got in between, the unit that is run again finds what that wrote; else it is a defect. */
  | "constraint"
  /** PostgreSQL cannot be reached, stops, starts, or does not take writes. */
  | "away"
  /** A limit of time or of connections was met. */
  | "busy";

/** SQLSTATE, as appendix A of PostgreSQL's manual lists it. */
const troubleOfState: Readonly<Record<string, PostgresTrouble>> = {
  "40001": "again", // serialization_failure
  "40P01": "again", // deadlock_detected
  "23505": "constraint", // unique_violation
  "23503": "constraint", // foreign_key_violation
  "25006": "away", // read_only_sql_transaction: a standby, or a server that was made one
  "57P01": "away", // admin_shutdown
  "57P02": "away", // crash_shutdown
  "57P03": "away", // cannot_connect_now
  "57P05": "away", // idle_session_timeout
  "58030": "away", // io_error
  "53100": "away", // disk_full
  "25P03": "busy", // idle_in_transaction_session_timeout
  "53200": "busy", // out_of_memory
  "53300": "busy", // too_many_connections
  "55P03": "busy", // lock_not_available
  "57014": "busy", // query_canceled, which a time limit does as well
};

/** What the operating system says of a way that is not there. */
const wayStates: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT", // the socket of a server on this host
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
]);

/** `pg` has no codes for these. */
const wayWords =
  /^(?:Connection terminated|Client was closed|Client has encountered a connection error|timeout expired|PostgreSQL did not answer|Postgres connection has been discarded)/;
const queueWords = /^timeout exceeded when trying to connect/;

/** Undefined for what is a defect, or a server that refuses this program for good. */
export function postgresTrouble(error: unknown): PostgresTrouble | undefined {
  const state = systemCode(error) ?? "";
  const known = Object.hasOwn(troubleOfState, state) ? troubleOfState[state] : undefined;
  if (known !== undefined) return known;
  if (state.startsWith("08") || wayStates.has(state)) return "away";
  const text = messageOf(error);
  if (queueWords.test(text)) return "busy";
  return wayWords.test(text) ? "away" : undefined;
}

/** SQLSTATE classes in which the server refuses this program: 28 of its password, 3D of its database, 3F and 42501 of its rights. */
const refusals = /^(?:28|3D|3F|42501$)/;

/** The error as callers of the store see it. What is to be run again stays as it is, and so does a defect. `where` names server and database, and no secret. */
export function postgresFault(error: unknown, where: string): unknown {
  if (error instanceof AccelError) return error;
  const trouble = postgresTrouble(error);
  if (trouble === "away")
    return new AccelError(
      "STORE_UNREACHABLE",
      `the store ${where} does not answer: ${messageOf(error)}`,
      { cause: error },
    );
  // All connections wait for answers: of a server that has too much to do, or that is silent.
  if (trouble === "busy" && queueWords.test(messageOf(error)))
    return new AccelError(
      "BUSY",
      `no connection to the store ${where} became free in time: it is silent, or overloaded`,
      {
        cause: error,
        hint: "See whether PostgreSQL answers: a silent one is told by the warning `store_unreachable` within half a minute. If it does, its log says what it waits for; `store.connections` says how many connections central opens.",
      },
    );
  if (systemCode(error) === lockNotAvailable)
    return new AccelError(
      "BUSY",
      `another session of the store ${where} holds what is to be changed, and did not let go in time: ${messageOf(error)}`,
      {
        cause: error,
        hint: "`pg_blocking_pids` and `pg_stat_activity` say whose session it is: `application_name` has the id of a central as `accel-central status` and the log name it. If that one is cut off, its transactions are ended within seconds.",
      },
    );
  if (trouble === "busy")
    return new AccelError("BUSY", `the store ${where} is overloaded: ${messageOf(error)}`, {
      cause: error,
      hint: "PostgreSQL's log says what it waits for: a lock, its disk, or too many connections. `store.connections` says how many central opens.",
    });
  if (refusals.test(systemCode(error) ?? ""))
    return new AccelError(
      "STORE_UNSUITED",
      `the store ${where} refuses central: ${messageOf(error)}`,
      { cause: error },
    );
  return error;
}

const lockNotAvailable = "55P03";

/** Whether another session of the store held what was to be changed for too long. */
export function isLockTimeout(error: unknown): boolean {
  return error instanceof AccelError && systemCode(error.cause) === lockNotAvailable;
}

/** Kysely has no class for it: the store was closed, since central stops. */
const closedText = "driver has already been destroyed";

/** Whether the store did not do what it was asked since it cannot be reached, takes no writes, has no connection free, or is closed: what was asked may be asked again. */
export function isStoreAway(error: unknown): boolean {
  return isStoreUnreachable(error) || codeOf(error) === "BUSY" || messageOf(error) === closedText;
}

/** Whether the store cannot be reached, or takes no writes: so it is for all who ask now. */
export function isStoreUnreachable(error: unknown): boolean {
  return codeOf(error) === "STORE_UNREACHABLE";
}

/** Leads from what a line says of an error to the error, which the log of central looks at: no line writes it. */
export const failureBehind = Symbol("failure");

/** What a line says of an error: its words, for nobody is helped by a stack. Central's log counts the line in place of writing it where that error is of a store that is away. */
export function failureFacts(error: unknown): {
  readonly reason: string;
  readonly [failureBehind]: unknown;
} {
  return { reason: messageOf(error), [failureBehind]: error };
}
