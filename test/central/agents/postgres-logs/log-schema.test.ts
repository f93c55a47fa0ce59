// Which tables of request logs a release works on, and what it makes of older ones.

import type pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { prepareLogTables } from "../../../../src/central/agents/postgres-logs/log-schema.ts";
import { postgresBin, PostgresServer } from "../../../support/postgres-server.ts";

const bin = postgresBin();

describe.skipIf(bin === undefined)("tables of request logs", { timeout: 120_000 }, () => {
  const opened = new AsyncDisposableStack();
  let server: PostgresServer;
  let client: pg.Client;
  let count = 0;
  beforeAll(async () => {
    server = opened.use(await PostgresServer.start(bin ?? ""));
  }, 120_000);
  afterAll(async () => opened.disposeAsync(), 60_000);
  beforeEach(async () => {
    const name = `s${++count}`;
    await server.run("postgres", `CREATE DATABASE ${name} TEMPLATE template0`);
    client = server.client(name);
    await client.connect();
    opened.defer(async () => client.end());
  });

  const ask = async (text: string): Promise<readonly unknown[]> => {
    const { rows } = await client.query(text);
    return rows;
  };
  const prepare = async (mayBeNewer = false): Promise<void> =>
    prepareLogTables(ask, "here", mayBeNewer);
  const level = async (): Promise<unknown> => (await ask("SELECT * FROM log_schema"))[0];

  test("those of the release before get what is new, and keep what they have", async () => {
    await prepare();
    const ours = await level();
    await ask("INSERT INTO log_day (day) VALUES ('2030-01-15')");
    for (const text of [
      "DROP TABLE kept_day, kept_number, log_schema",
      "CREATE TABLE log_schema (version integer NOT NULL)",
      "INSERT INTO log_schema VALUES (1)",
    ])
      await ask(text);
    await prepare();
    expect(await level()).toEqual(ours);
    expect(await ask("SELECT day FROM log_day")).toEqual([{ day: "2030-01-15" }]);
    expect(await ask("SELECT FROM kept_day")).toEqual([]);
  });

  test.each([
    { newer: "UPDATE log_schema SET version = 90", refused: false },
    { newer: "UPDATE log_schema SET version = 90, needed = 2", refused: false },
    { newer: "UPDATE log_schema SET version = 90, needed = 89", refused: true },
  ])(
    "of a newer release, after $newer: refused is $refused, and none of a program that runs",
    async ({ newer, refused }) => {
      await prepare();
      await ask(newer);
      const before = await level();
      const outcome = await prepare().then(
        () => "used",
        (error: unknown) => Object(error)["code"],
      );
      expect(outcome).toBe(refused ? "DATABASE_NEWER" : "used");
      await prepare(true);
      expect(await level()).toEqual(before);
    },
  );
});
