// PostgreSQL through Kysely as the store needs it:
//
//   isolation    transactions are SERIALIZABLE unless they say otherwise, and so are single statements; read-committed.ts lists who says so
//   repetitions  what PostgreSQL refuses because of others is run again: a single statement here, a transaction in `PostgresStore`
//   faults       a server that is away or overloaded is told as STORE_UNREACHABLE or BUSY, with its place
//   marks        a transaction that writes leaves a number in the store, by which central finds out later whether the store still has it (store-evidence.ts)

import { CompiledQuery, Kysely, PostgresDialect, PostgresDriver } from "kysely";
import type {
  DatabaseConnection,
  PostgresPool,
  TransactionBuilder,
  TransactionSettings,
} from "kysely";
import { AccelError, codeOf, messageOf, systemCode } from "../../../core/faults.ts";
import type { CommitMarks } from "./commit-marks.ts";
import { postgresTrouble, postgresFault } from "./postgres-faults.ts";
import { repeated, Repeats, type RepeatsOptions } from "./repeats.ts";
import type { StoreTables } from "./schema.ts";

export type PostgresStoreOptions = {
  readonly pool: PostgresPool;
  /** Names server and database in messages. */
  readonly where: string;
  /** In [0, 1): spreads repetitions. */
  readonly random: () => number;
  /** Called before a unit is run again. */
  readonly onRepeat?: () => void;
  /** Where transactions that write are noted; without it they leave no number. */
  readonly marks?: Pick<CommitMarks, "run" | "next" | "acknowledged" | "ended">;
  /** Returns the time that is noted with a number. By default it is the system's. */
  readonly now?: () => Date;
};

/**
 * A transaction that says no isolation is a unit: it may be run several times, beside others of this process at first and then alone, and must have no effect but on
 * the store. So is one that says READ COMMITTED. One that says another isolation runs once.
 */
export class PostgresStore extends Kysely<StoreTables> {
  readonly #repeats: Repeats;
  readonly #where: string;

  constructor(options: PostgresStoreOptions) {
    const { random, onRepeat = nothing } = options;
    const repeats = { random, onRepeat, mayRepeat: isRefused };
    super({ dialect: new SerializableDialect(options, repeats) });
    this.#repeats = new Repeats({ ...repeats, mayRepeat: mayRepeatUnit });
    this.#where = options.where;
  }

  override transaction(): TransactionBuilder<StoreTables> {
    const builder = super.transaction();
    const isolated = builder.setIsolationLevel.bind(builder);
    builder.setIsolationLevel = (level) =>
      level === "read committed" ? this.#repeating(isolated(level)) : isolated(level);
    return this.#repeating(builder);
  }

  #repeating(builder: TransactionBuilder<StoreTables>): TransactionBuilder<StoreTables> {
    const once = builder.execute.bind(builder);
    builder.execute = async (unit) => {
      try {
        return await this.#repeats.run(async () => once(unit));
      } catch (error) {
        throw exhausted(error, this.#where);
      }
    };
    return builder;
  }
}

const nothing = (): void => undefined;
const isRefused = (error: unknown): boolean => postgresTrouble(error) === "again";
/** Once beside others, once alone, and once more for another process. */
const constraintAttemptsMax = 3;

function mayRepeatUnit(error: unknown, attempts: number): boolean {
  const trouble = postgresTrouble(error);
  return trouble === "again" || (trouble === "constraint" && attempts < constraintAttemptsMax);
}

/** Others were in the way each time. A constraint that is violated each time is a defect, and stays what it is. */
function exhausted(error: unknown, where: string): unknown {
  if (!isRefused(error)) return error;
  return new AccelError(
    "BUSY",
    `too many change the same in the store ${where} at once: ${messageOf(error)}`,
    { cause: error },
  );
}

/** A query that was built as a read. What was written as text may be anything. */
function isPlainRead({ query }: CompiledQuery): boolean {
  return query.kind === "SelectQueryNode" && !("with" in query && query.with !== undefined);
}

class SerializableDialect extends PostgresDialect {
  readonly #options: PostgresStoreOptions;
  readonly #repeats: RepeatsOptions;

  constructor(options: PostgresStoreOptions, repeats: RepeatsOptions) {
    super({ pool: options.pool });
    this.#options = options;
    this.#repeats = repeats;
  }

  override createDriver(): PostgresDriver {
    return new SerializableDriver(this.#options, this.#repeats);
  }
}

/** PostgreSQL's texts hold every character but NUL, which a stranger may send anywhere: it becomes U+FFFD, where it is stored and where it is looked for. */
function withoutNul(query: CompiledQuery): CompiledQuery {
  const hasNul = (value: unknown): value is string =>
    typeof value === "string" && value.includes("\0");
  if (!query.parameters.some(hasNul)) return query;
  const parameters = query.parameters.map((value) =>
    hasNul(value) ? value.replaceAll("\0", "\uFFFD") : value,
  );
  return { ...query, parameters };
}

/** Inserts nothing where nothing else was written: such a transaction needs no number. */
const markSql = `
  INSERT INTO commit_marks (run, no, at)
  SELECT $1, $2, $3 WHERE pg_current_xact_id_if_assigned() IS NOT NULL
`;
/** in_failed_sql_transaction: a statement failed before. */
const abortedState = "25P02";

type PostgresConnection = Parameters<PostgresDriver["rollbackTransaction"]>[0];

class SerializableDriver extends PostgresDriver {
  readonly #where: string;
  readonly #repeats: RepeatsOptions;
  readonly #guarded = new WeakSet<DatabaseConnection>();
  readonly #inTransaction = new WeakSet<DatabaseConnection>();
  /** Connections whose transaction has run more than plain reads. */
  readonly #mayHaveWritten = new WeakSet<DatabaseConnection>();
  readonly #marks: PostgresStoreOptions["marks"];
  readonly #now: () => Date;

  constructor(options: PostgresStoreOptions, repeats: RepeatsOptions) {
    const { pool, where, marks, now = () => new Date() } = options;
    super({ pool });
    this.#where = where;
    this.#repeats = repeats;
    this.#marks = marks;
    this.#now = now;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    try {
      const connection = await super.acquireConnection();
      if (!this.#guarded.has(connection)) this.#guard(connection);
      return connection;
    } catch (error) {
      throw postgresFault(error, this.#where);
    }
  }

  override async beginTransaction(
    connection: DatabaseConnection,
    { isolationLevel = "serializable", ...settings }: TransactionSettings,
  ): Promise<void> {
    this.#inTransaction.add(connection);
    try {
      await super.beginTransaction(connection, { ...settings, isolationLevel });
      this.#mayHaveWritten.delete(connection);
    } catch (error) {
      this.#inTransaction.delete(connection);
      throw error;
    }
  }

  /** A COMMIT is never repeated: where its answer is lost, nobody knows what became of it. */
  override async commitTransaction(connection: DatabaseConnection): Promise<void> {
    const marks = this.#mayHaveWritten.has(connection) ? this.#marks : undefined;
    const no = marks?.next() ?? 0;
    try {
      const isMarked = marks !== undefined && (await this.#mark(connection, marks.run, no));
      await super.commitTransaction(connection);
      if (isMarked) marks.acknowledged(no);
    } finally {
      marks?.ended(no);
      this.#inTransaction.delete(connection);
    }
  }

  /** Returns whether the transaction has written, so that its number is stored with it. */
  async #mark(connection: DatabaseConnection, run: string, no: number): Promise<boolean> {
    try {
      const { numAffectedRows } = await connection.executeQuery(
        CompiledQuery.raw(markSql, [run, no, this.#now().toISOString()]),
      );
      return numAffectedRows === 1n;
    } catch (error) {
      // The COMMIT says it as it says it to everybody.
      if (systemCode(error) === abortedState) return false;
      throw error;
    }
  }

  /** The reason of the rollback is what the caller is told. A connection that cannot roll back is given up, and with it the transaction. */
  override async rollbackTransaction(connection: PostgresConnection): Promise<void> {
    try {
      await super.rollbackTransaction(connection);
    } catch (error) {
      if (!["STORE_UNREACHABLE", "BUSY"].includes(codeOf(error))) throw error;
    } finally {
      this.#inTransaction.delete(connection);
    }
  }

  /** The driver that this extends knows its connections by themselves, so they are changed and not wrapped. */
  #guard(connection: DatabaseConnection): void {
    this.#guarded.add(connection);
    const execute = connection.executeQuery.bind(connection);
    connection.executeQuery = async <R>(asked: CompiledQuery) => {
      const query = withoutNul(asked);
      if (!isPlainRead(query)) this.#mayHaveWritten.add(connection);
      try {
        return this.#inTransaction.has(connection)
          ? await execute<R>(query)
          : await repeated(async () => execute<R>(query), this.#repeats);
      } catch (error) {
        throw postgresFault(error, this.#where);
      }
    };
  }
}
