// A store moves from its file to PostgreSQL: every row, under the same epoch and keys; cut off anywhere it goes on, and nothing serves from what is not whole.

import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openSqlite } from "../../src/base/sqlite.ts";
import type { CommandContext } from "../../src/base/command.ts";
import { newKey } from "../../src/base/seal.ts";
import { backupCommand, migrateCommand } from "../../src/central/main.ts";
import { openReader } from "../../src/central/store/engine/database.ts";
import { moveStore } from "../../src/central/store/move/move-store.ts";
import { SourceFile } from "../../src/central/store/move/source-file.ts";
import { connectPostgresStore } from "../../src/central/store/engine/postgres-store.ts";
import { call, newSite, settingsOf, start, statusOf } from "../support/central-whole.ts";
import { PostgresServer, postgresBin } from "../support/postgres-server.ts";
import { Program } from "../support/process.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const bin = postgresBin();
const elements = 2_500;

describe.skipIf(bin === undefined)("a store that moves", () => {
  const opened = new AsyncDisposableStack();
  let server: PostgresServer;
  let count = 0;
  let dir: string;
  let database: string;
  let site: Awaited<ReturnType<typeof newSite>>;
  let epoch: unknown;
  beforeAll(async () => {
    server = opened.use(await PostgresServer.start(bin ?? "", { isDurable: true }));
  }, 120_000);
  afterAll(async () => opened.disposeAsync(), 60_000);

  /** A central with something of everything, stopped; and an empty database. */
  beforeEach(async () => {
    dir = opened.use(tempDir()).path;
    database = `m${++count}`;
    await server.run("postgres", `CREATE DATABASE ${database} TEMPLATE template0`);
    await using central = await start(settingsOf(dir));
    site = await newSite(central.url);
    const { token, id } = site;
    await call(central.url, "POST", "/domain/", token, {
      name: "www.example.com",
      deployment_site_id: id,
    });
    await call(central.url, "POST", "/mark-as-bad-bot/198.51.100.7/", token, {
      attach_to_bot: "Ünïcode 🤖",
      attach_to_domain: "www.example.com",
    });
    const gone = await call(central.url, "POST", "/deployment-site/", token, { tags: "a, b" });
    epoch = Object(await statusOf(dir))["epoch"];
    const db = openSqlite(join(dir, "central.db"), { sync: "full" });
    // Given, and gone: it is never given again.
    db.prepare("DELETE FROM deployment_sites WHERE id = ?").run(gone["id"]);
    const insert = db.prepare(
      "INSERT INTO bot_elements (bot_id, range, family, first, last, bot_set_id) SELECT id, ?, 4, ?, ?, bot_set_id FROM bots LIMIT 1",
    );
    db.transaction(() => {
      for (let no = 0; no < elements; no++) {
        const address = Buffer.of(10, 0, no >> 8, no & 0xff);
        insert.run([...address].join("."), address, address);
      }
    })();
    db.close();
  }, 120_000);

  const contextOf = (stop: AbortSignal): CommandContext => ({
    version: "0.0.0",
    program: "accel-central",
    args: [],
    out: () => undefined,
    colour: false,
    env: {},
    stop,
    onReload: () => undefined,
  });
  const storeYaml = (name = database): string => {
    const { host, port } = server.place(name);
    return `store:\n  url: postgres://accel@localhost:${port}/${name}?host=${host}\n`;
  };
  async function migrate(...args: readonly string[]): Promise<string> {
    return migrateUntil(new AbortController().signal, () => undefined, ...args);
  }
  /** By settings that name no PostgreSQL. */
  async function backUp(): Promise<void> {
    const config = join(dir, "file.yaml");
    writeFileSync(config, `state_dir: ${dir}\n`);
    const args = [join(dir, "backup"), "--config", config];
    await backupCommand.run({ ...contextOf(new AbortController().signal), args });
  }
  async function migrateUntil(
    stop: AbortSignal,
    onLine: (text: string) => void,
    ...args: readonly string[]
  ): Promise<string> {
    const config = join(dir, "central.yaml");
    writeFileSync(config, `state_dir: ${dir}\n${storeYaml()}`);
    let said = "";
    await migrateCommand.run({
      ...contextOf(stop),
      args: ["--from", dir, "--config", config, ...args],
      out: (text) => {
        said += text;
        onLine(text);
      },
    });
    return said;
  }
  const serve = async (more: string): Promise<void> =>
    (await start(settingsOf(dir, more)))[Symbol.asyncDispose]();
  const moved = expect.objectContaining({ code: "STORE_MOVED" });

  test("all of it is there: the customer's token, the site, the epoch; new ids go on behind the last one given", async () => {
    const said = await migrate();
    expect(said).toMatch(/copied {3}bot_elements: 2501 rows\n/);
    expect(said).toMatch(/compared bot_elements: 2501 rows\n/);
    expect(said).toContain(`epoch ${String(epoch)}, as before; `);
    {
      await using central = await start(settingsOf(dir, storeYaml()));
      expect(await statusOf(dir)).toMatchObject({
        epoch,
        store: expect.stringMatching(new RegExp(`^postgres://accel@.*/${database}$`)),
        deployment_sites: [{ id: site.id, name16: site.name16 }],
      });
      const made = await call(central.url, "POST", "/deployment-site/", site.token, { tags: "" });
      expect(made["id"]).toBe(site.id + 2);
    }
    // The file stays, and is served by nobody; nor is another database under this directory.
    await expect(serve("")).rejects.toEqual(moved);
    await expect(backUp()).rejects.toEqual(moved);
    expect(await migrate()).toMatch(/ was moved to .*: there is nothing left to do\n$/);
    expect(JSON.parse(await migrate("--json"))).toMatchObject({ epoch });
    await expect(migrate("--abandon")).rejects.toEqual(moved);
    await server.run("postgres", `CREATE DATABASE ${database}x TEMPLATE template0`);
    await expect(serve(storeYaml(`${database}x`))).rejects.toMatchObject({
      code: "STORE_MOVED",
      message: expect.stringMatching(/is another one/),
    });
  }, 120_000);

  test("cut off between two pages, and between two tables: nothing serves meanwhile; given again it goes on, and all is there once", async () => {
    for (const line of ["copied   audit", "copied   bot_elements", "compared audit"]) {
      const stop = new AbortController();
      const cut = migrateUntil(stop.signal, (text) => {
        if (text.startsWith(line)) stop.abort(new Error("cut off"));
      });
      await expect(cut).rejects.toThrow("cut off");
      await expect(serve("")).rejects.toEqual(moved);
      await expect(serve(storeYaml())).rejects.toEqual(moved);
      // Nor from another state directory.
      const other = opened.use(tempDir()).path;
      await expect(start(settingsOf(other, storeYaml()))).rejects.toEqual(moved);
    }
    const facts: unknown = JSON.parse(await migrate("--json"));
    expect(facts).toMatchObject({ epoch, isResumed: true });
    await serve(storeYaml());
  }, 240_000);

  test("killed: given again, the command goes on", async () => {
    const config = join(dir, "central.yaml");
    writeFileSync(config, `state_dir: ${dir}\n${storeYaml()}`);
    const args = ["central", "migrate", "--from", dir, "--config", config];
    {
      await using command = await Program.start(args);
      await until("it copies", () => command.said.includes("copied"));
      await command.kill();
    }
    await expect(serve("")).rejects.toEqual(moved);
    await using again = await Program.start(args);
    expect([await again.exited(), again.said]).toEqual([
      0,
      expect.stringMatching(/each compared with the file/),
    ]);
    await serve(storeYaml());
  }, 120_000);

  test("abandoned: the file is the store again and PostgreSQL is empty, also if PostgreSQL cannot be asked", async () => {
    const stop = new AbortController();
    const cut = migrateUntil(stop.signal, () => stop.abort(new Error("cut off")));
    await expect(cut).rejects.toThrow("cut off");
    expect(await migrate("--abandon")).toMatch(/holds nothing of it/);
    await serve("");
    expect(
      await server.run(
        database,
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
      ),
    ).toEqual([]);
    const again = new AbortController();
    const second = migrateUntil(again.signal, () => again.abort(new Error("cut off")));
    await expect(second).rejects.toThrow("cut off");
    await server.run("postgres", `ALTER DATABASE ${database} RENAME TO ${database}_away`);
    expect(await migrate("--abandon")).toMatch(/drop that database/);
    await serve("");
    await expect(migrate("--abandon")).rejects.toMatchObject({ code: "NOT_FOUND" });
  }, 120_000);

  test("what is refused leaves file and database as they are", async () => {
    await server.run(database, "CREATE TABLE others (id integer)");
    await expect(migrate()).rejects.toMatchObject({
      code: "MOVE_FAILED",
      message: expect.stringMatching(/PostgreSQL has others/),
    });
    await server.run(database, "DROP TABLE others");
    await using used = connectPostgresStore({ place: server.place(database), random: () => 0 });
    await used.insertInto("store").values({ id: 1, epoch: "x", when_created: "y" }).execute();
    await expect(migrate()).rejects.toMatchObject({
      code: "STORE_NOT_EMPTY",
      message: expect.stringMatching(/there are rows in store/),
    });
    await used.deleteFrom("store").execute();
    const elsewhere = migrate("--from", opened.use(tempDir()).path);
    await expect(elsewhere).rejects.toMatchObject({ code: "USAGE" });
    renameSync(join(dir, "central.key"), join(dir, "its.key"));
    await expect(migrate()).rejects.toMatchObject({ code: "STORE_KEY_WRONG" });
    writeFileSync(join(dir, "central.key"), `${newKey()}\n`, { mode: 0o600 });
    await expect(migrate()).rejects.toMatchObject({ code: "STORE_KEY_WRONG" });
    renameSync(join(dir, "its.key"), join(dir, "central.key"));
    {
      await using _ = await start(settingsOf(dir));
      await expect(migrate()).rejects.toMatchObject({ code: "STATE_DIR_LOCKED" });
    }
    // An operator who only names PostgreSQL does not begin with an empty store beside a full one.
    await expect(serve(storeYaml())).rejects.toMatchObject({
      code: "STORE_MOVED",
      message: expect.stringMatching(/was not moved/),
    });
    await migrate();
  }, 120_000);

  test.each([
    [
      "a row that is another",
      "UPDATE users SET email = 'other@c.example'",
      /users differs at \[1\]: email/,
    ],
    ["a row that is gone", "DELETE FROM journal WHERE seq = 1", /journal differs at \[1,1\]/],
    [
      "a row too many",
      "INSERT INTO journal_bodies VALUES ('0', '{}')",
      /journal_bodies has \d+ rows in PostgreSQL and \d+ in the file/,
    ],
  ])(
    "%s is found when all is compared",
    async (_, statement, words) => {
      const file = join(dir, "central.db");
      await using sourceStore = openReader(file);
      using source = new SourceFile(file);
      await using target = connectPostgresStore({ place: server.place(database), random: () => 0 });
      const move = async () =>
        moveStore({
          source,
          sourceStore,
          target,
          where: "there",
          onBegin: async () => undefined,
          onTable: () => undefined,
          stop: new AbortController().signal,
        });
      await move();
      // Before the mark says that it is whole, a move that is given again compares all once more.
      await server.run(database, statement);
      await expect(move()).rejects.toMatchObject({
        code: "MOVE_FAILED",
        message: expect.stringMatching(words),
      });
    },
    60_000,
  );
});
