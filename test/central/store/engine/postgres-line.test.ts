// One connection to PostgreSQL for one question after the other: what happens when it ends, cannot be made, or is silent.

import { createServer } from "node:net";
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  PostgresLine,
  type LineOptions,
} from "../../../../src/central/store/engine/postgres-line.ts";
import { postgresBin, PostgresServer } from "../../../support/postgres-server.ts";

const bin = postgresBin();
const limits = { statementMs: 5_000, lockMs: 5_000, idleInTransactionMs: 5_000 };

describe.skipIf(bin === undefined)("a line", () => {
  const opened = new AsyncDisposableStack();
  let server: PostgresServer;
  beforeAll(async () => {
    server = opened.use(await PostgresServer.start(bin ?? ""));
  }, 120_000);
  afterAll(async () => opened.disposeAsync(), 60_000);

  const lineOf = (more: Partial<LineOptions> = {}): PostgresLine =>
    new PostgresLine({
      place: server.place("postgres"),
      limits,
      name: "line",
      settings: ["default_transaction_isolation=read committed", "enable_bitmapscan=off"],
      prepare: async () => undefined,
      nowMs: () => performance.now(),
      ...more,
    });

  test("its settings hold, and what COPY is sent comes back", async () => {
    await using line = lineOf();
    const shown = await line.query(
      "SELECT current_setting('default_transaction_isolation') AS i, current_setting('enable_bitmapscan') AS b",
      [],
      undefined,
    );
    expect(shown).toEqual([{ i: "read committed", b: "off" }]);
    await line.query("CREATE TABLE copied (id bigint, line text)", [], undefined);
    const long = "é".repeat(400_000);
    const text = Buffer.from(`1\t${long}\n2\ta\\\\b\\tc\n`);
    // As it comes from another thread: no Buffer, and not the whole of its memory.
    await line.copy("COPY copied FROM STDIN", new Uint8Array(text), undefined);
    expect(await line.query("SELECT id, line FROM copied ORDER BY id", [], undefined)).toEqual([
      { id: 1, line: long },
      { id: 2, line: "a\\b\tc" },
    ]);
    await expect(
      line.copy("COPY copied FROM STDIN", Buffer.from("x\ty\n"), undefined),
    ).rejects.toMatchObject({ code: "22P02" });
    expect(await line.query("SELECT count(*) AS n FROM copied", [], undefined)).toEqual([{ n: 2 }]);
  });

  test("a question of a transaction is not asked on another connection", async () => {
    await using line = lineOf();
    await line.query("BEGIN", [], undefined);
    const on = line.connections;
    const [row] = await line.query("SELECT pg_backend_pid() AS pid", [], on);
    // It returns when the process has ended: until then it answers.
    const pid = Number(Object(row)["pid"]);
    await server.run("postgres", `SELECT pg_terminate_backend(${pid}, 60000)`);
    await expect(line.query("SELECT 1", [], on)).rejects.toThrow(/terminat/);
    await expect(line.query("SELECT 1", [], on)).rejects.toThrow(/terminated within a transaction/);
    expect(await line.query("SELECT 1 AS n", [], undefined)).toEqual([{ n: 1 }]);
    expect(line.connections).toBe(on + 1);
  });

  test("while no connection can be made, those who wait are told at once, and the next one after the pause tries", async () => {
    let nowMs = 0;
    let attempts = 0;
    const prepare = async (): Promise<void> => {
      attempts++;
      nowMs += 4_000;
      if (attempts === 1) throw new Error("not now");
    };
    await using line = lineOf({ prepare, nowMs: () => nowMs });
    const ask = async (): Promise<unknown> => line.query("SELECT 1 AS n", [], undefined);
    await expect(ask()).rejects.toThrow("not now");
    nowMs += 3_999;
    await expect(ask()).rejects.toThrow("not now");
    expect(attempts).toBe(1);
    nowMs += 1;
    expect(await ask()).toEqual([{ n: 1 }]);
    expect(attempts).toBe(2);
  });

  test("a server that takes connections and says nothing is given up", async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    const address = silent.address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;
    const place = server.place("postgres", { host: "127.0.0.1", port });
    await using line = lineOf({ place });
    await expect(line.query("SELECT 1", [], undefined)).rejects.toThrow(/timeout/);
    silent.close();
  }, 30_000);
});
