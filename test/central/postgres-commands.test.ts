// The commands of operators where the store is on PostgreSQL: `check` tries it, `rekey` seals there, `backup` and `restore` say who else does that.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Command } from "../../src/base/command.ts";
import {
  backupCommand,
  centralCheckCommand,
  rekeyCommand,
  restoreCommand,
} from "../../src/central/main.ts";
import { call, newSite, settingsOf, start } from "../support/central-whole.ts";
import { PostgresServer, postgresBin } from "../support/postgres-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const bin = postgresBin();

describe.skipIf(bin === undefined)("commands", () => {
  const opened = new AsyncDisposableStack();
  const dir = opened.use(tempDir()).path;
  const config = join(dir, "central.yaml");
  let server: PostgresServer;
  let yaml = "";
  beforeAll(async () => {
    server = opened.use(await PostgresServer.start(bin ?? "", { isDurable: true }));
    await server.run("postgres", "CREATE DATABASE central TEMPLATE template0");
    const { host, port } = server.place("central");
    yaml = `store:\n  url: postgres://accel@localhost:${port}/central?host=${host}\n`;
    writeFileSync(config, `state_dir: ${dir}/state\n${yaml}`);
  }, 120_000);
  afterAll(async () => opened.disposeAsync(), 60_000);

  let said = "";
  async function run(command: Command, ...args: readonly string[]): Promise<string> {
    said = "";
    await command.run({
      version: "0.0.0",
      program: "accel-central",
      args: [...args, "--config", config],
      out: (text) => (said += text),
      colour: false,
      env: {},
      stop: new AbortController().signal,
      onReload: () => undefined,
    });
    return said;
  }

  test("check asks the server, and writes nothing", async () => {
    expect(await run(centralCheckCommand)).toMatch(
      /\/central: PostgreSQL \d+[^\n]* can hold the store\n[^\n]*central\.yaml: valid\n$/,
    );
    const tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'";
    expect(await server.run("central", tables)).toEqual([]);
    await server.run("postgres", "ALTER DATABASE central SET synchronous_commit = off");
    await expect(run(centralCheckCommand)).rejects.toMatchObject({ code: "STORE_UNSUITED" });
    await server.run("postgres", "ALTER DATABASE central RESET synchronous_commit");
    await server.end();
    await expect(run(centralCheckCommand)).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    await server.begin();
  }, 60_000);

  test("rekey seals every secret in PostgreSQL anew, while no central runs there", async () => {
    const settings = settingsOf(join(dir, "state"), yaml);
    let token = "";
    {
      await using central = await start(settings);
      ({ token } = await newSite(central.url));
      await expect(run(rekeyCommand)).rejects.toMatchObject({ code: "STATE_DIR_LOCKED" });
    }
    const key = (): string => readFileSync(join(dir, "state", "central.key"), "utf8");
    const before = key();
    expect(await run(rekeyCommand)).toMatch(/the key is another; \d+ secrets were sealed with it/);
    expect(key()).not.toBe(before);
    {
      await using central = await start(settings);
      const made = await call(central.url, "POST", "/deployment-site/", token, { tags: "" });
      expect(made["secret16"]).toMatch(/^[0-9a-f]{32}$/);
    }
    const after = key();
    writeFileSync(join(dir, "state", "central.key"), before);
    await expect(start(settings)).rejects.toMatchObject({ code: "STORE_KEY_WRONG" });
    await expect(run(centralCheckCommand)).rejects.toMatchObject({ code: "STORE_KEY_WRONG" });
    rmSync(join(dir, "state", "central.key"));
    await expect(run(centralCheckCommand)).rejects.toMatchObject({
      code: "STORE_KEY_WRONG",
      message: expect.stringMatching(/is missing/),
    });
    expect(existsSync(join(dir, "state", "central.key"))).toBe(false);
    writeFileSync(join(dir, "state", "central.key"), after);
    expect(await run(centralCheckCommand)).toMatch(/: valid\n$/);
    // A central that has seen this server's successor.
    const evidence = join(dir, "state", "store.evidence");
    const own = readFileSync(evidence, "utf8");
    writeFileSync(evidence, own.replace('"timeline":1', '"timeline":2'));
    const former = { code: "STORE_UNREACHABLE", message: expect.stringMatching(/former primary/) };
    await expect(start(settings)).rejects.toMatchObject(former);
    await expect(run(centralCheckCommand)).rejects.toMatchObject(former);
    writeFileSync(evidence, own);
  }, 120_000);

  test("check tries the database of request logs, too, where the store fails", async () => {
    const { host } = server.place("central");
    const logs = `request_logs:\n  url: postgres://accel@localhost:1/logs?host=${host}\n`;
    writeFileSync(config, `state_dir: ${dir}/state\n${yaml}${logs}`);
    await server.end();
    await expect(run(centralCheckCommand)).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    expect(said).toMatch(
      /logs does not answer[^\n]*\n {2}Look at the PostgreSQL that `request_logs/,
    );
    await server.begin();
    writeFileSync(config, `state_dir: ${dir}/state\n${yaml}`);
  }, 60_000);

  test("a second central at the same store is refused, also for a command", async () => {
    const keyFile = `key_file: ${join(dir, "state", "central.key")}\n`;
    const other = settingsOf(join(dir, "other"), `${yaml}${keyFile}`);
    await using _ = await start(other);
    await expect(run(rekeyCommand)).rejects.toMatchObject({ code: "STORE_TAKEN" });
  }, 60_000);

  test("a central whose connection was cut, and whose store another one took meanwhile, ends by itself and says why", async () => {
    const central = await start(settingsOf(join(dir, "state"), yaml));
    // Waits in line on the server, so that it has the lock as soon as the first one's connection ends.
    const other = server.client("central");
    await other.connect();
    opened.defer(async () => other.end());
    const waiting = other.query("SELECT pg_advisory_lock(7301, 1)");
    const cut =
      "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted";
    await server.run("central", cut);
    await waiting;
    await until("nobody listens any more", async () =>
      fetch(`${central.url}/healthz`).then(
        () => false,
        () => true,
      ),
    );
    await expect(central[Symbol.asyncDispose]()).rejects.toMatchObject({ code: "STORE_TAKEN" });
  }, 60_000);

  test("backup and restore name the page that says how", async () => {
    for (const command of [backupCommand, restoreCommand])
      await expect(run(command, join(dir, "backup"))).rejects.toMatchObject({
        code: "USAGE",
        message: expect.stringMatching(/PostgreSQL's own means/),
        hint: expect.stringMatching(/docs\/operations\/cluster\.md/),
      });
  });
});
