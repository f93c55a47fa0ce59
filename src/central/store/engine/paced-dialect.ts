// SQLite through Kysely, for thousands of callers at once:
//
//   turns        SQLite answers at once, so that queries of many callers, each waiting for the one before, would all run in one turn of the event loop: with a
//                hundred agents a second passed before a ping was answered. Here a turn is let pass after every few milliseconds of queries.
//   order        the connection is given to who waited longest. Kysely wakes all who wait each time it is free: 5,000 of them are 12 million wakes.
//   statements   are prepared once, not at every query, which was a third of what a query took.

import { setImmediate } from "node:timers/promises";
import {
  SqliteAdapter,
  SqliteDialect,
  SqliteDriver,
  type CompiledQuery,
  type DatabaseConnection,
  type SqliteDatabase,
  type SqliteDialectConfig,
  type SqliteStatement,
} from "kysely";
import { messageOf } from "../../../core/faults.ts";

const turnMs = 4;
/** Texts differ by how many values a list has, in round sizes (parts.ts); each takes a few KiB, one of a thousand rows half a MiB. */
const statementsMax = 500;

export class PacedSqliteDialect extends SqliteDialect {
  readonly #config: SqliteDialectConfig;

  constructor(config: SqliteDialectConfig) {
    super(config);
    this.#config = config;
  }

  override createDriver(): SqliteDriver {
    const { database } = this.#config;
    return new PacedDriver({
      ...this.#config,
      database: async (options) =>
        new PreparedOnce(typeof database === "function" ? await database(options) : database),
    });
  }

  override createAdapter(): SqliteAdapter {
    return new PacedAdapter();
  }
}

/** There is one connection, and the driver below says who has it. */
class PacedAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true;
  }
}

class PacedDriver extends SqliteDriver {
  /** There is one. */
  #connection: DatabaseConnection | undefined;
  #isTaken = false;
  readonly #waiting: (() => void)[] = [];

  override async acquireConnection(): Promise<DatabaseConnection> {
    if (this.#isTaken) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.push(resolve);
      await promise; // It is handed over taken.
    }
    this.#isTaken = true;
    return (this.#connection ??= paced(await super.acquireConnection()));
  }

  /** A disk that is full has SQLite take the transaction back by itself: that nothing is left to take back would be told instead of why. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    try {
      await super.rollbackTransaction(connection);
    } catch (error) {
      if (!messageOf(error).includes("no transaction is active")) throw error;
    }
  }

  override async releaseConnection(): Promise<void> {
    const next = this.#waiting.shift();
    if (next === undefined) this.#isTaken = false;
    else next();
  }
}

function paced(connection: DatabaseConnection): DatabaseConnection {
  let turnBeganMs = performance.now();
  const turn = async (): Promise<void> => {
    if (performance.now() - turnBeganMs < turnMs) return;
    await setImmediate();
    turnBeganMs = performance.now();
  };
  return {
    executeQuery: async <R>(query: CompiledQuery) => {
      await turn();
      return connection.executeQuery<R>(query);
    },
    streamQuery: <R>(query: CompiledQuery, chunkSize: number) =>
      connection.streamQuery<R>(query, chunkSize),
  };
}

class PreparedOnce implements SqliteDatabase {
  readonly #database: SqliteDatabase;
  /** The one used last stands last. */
  readonly #statements = new Map<string, SqliteStatement>();

  constructor(database: SqliteDatabase) {
    this.#database = database;
  }

  prepare(text: string): SqliteStatement {
    const known = this.#statements.get(text);
    const statement = known ?? this.#new(text);
    this.#statements.delete(text);
    this.#statements.set(text, statement);
    const oldest =
      this.#statements.size > statementsMax ? this.#statements.keys().next().value : undefined;
    if (oldest !== undefined) this.#statements.delete(oldest);
    return statement;
  }

  close(): void {
    this.#statements.clear();
    this.#database.close();
  }

  /** A statement that is being walked through cannot be run beside: each walk has one of its own. */
  #new(text: string): SqliteStatement {
    const statement = this.#database.prepare(text);
    return {
      reader: statement.reader,
      all: (parameters) => statement.all(parameters),
      run: (parameters) => statement.run(parameters),
      iterate: (parameters) => this.#database.prepare(text).iterate(parameters),
    };
  }
}
