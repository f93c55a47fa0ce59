// SQLite answers at once, so that queries of many callers, each waiting for the one before, would all run in one turn of the event loop: with a hundred
// agents a second passed before a ping was answered. Here a turn is let pass after every few milliseconds of queries.

import { setImmediate } from "node:timers/promises";
import {
  SqliteDialect,
  SqliteDriver,
  type CompiledQuery,
  type DatabaseConnection,
  type SqliteDialectConfig,
} from "kysely";

const turnMs = 4;

export class PacedSqliteDialect extends SqliteDialect {
  readonly #config: SqliteDialectConfig;

  constructor(config: SqliteDialectConfig) {
    super(config);
    this.#config = config;
  }

  override createDriver(): SqliteDriver {
    return new PacedDriver(this.#config);
  }
}

class PacedDriver extends SqliteDriver {
  /** There is one. */
  #connection: DatabaseConnection | undefined;

  override async acquireConnection(): Promise<DatabaseConnection> {
    return (this.#connection ??= paced(await super.acquireConnection()));
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
