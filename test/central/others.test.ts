// What `check` asks of a store at which other centrals work, on a real PostgreSQL, and what is compared of two files of settings.

import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listenText } from "../../src/base/settings-fields.ts";
import { Health } from "../../src/base/health.ts";
import { silentLog } from "../../src/base/log.ts";
import { readSettings } from "../../src/base/settings.ts";
import { every } from "../../src/base/wait.ts";
import { centralCheckCommand } from "../../src/central/main.ts";
import { tellClock, tellDiffering, tryJoin } from "../../src/central/others.ts";
import {
  alikeSettings,
  alikeText,
  differingSettings,
  readAlike,
} from "../../src/central/settings/alike.ts";
import { centralFields, type CentralSettings } from "../../src/central/settings/fields.ts";
import { addCentral, byKeys } from "../../src/central/store/centrals/centrals.ts";
import type { Store } from "../../src/central/store/engine/database.ts";
import { setPlaceOfObjects } from "../../src/central/store/objects/objects-place.ts";
import { parseSha256 } from "../../src/core/ids.ts";
import { contextOf } from "../cli/command-rig.ts";
import { bucketName } from "../support/bucket-rig.ts";
import { settingsOf } from "../support/central-whole.ts";
import { objectsYaml } from "../support/objects-central.ts";
import { startPostgres, type Postgres } from "../support/postgres.ts";
import { postgresBin } from "../support/postgres-server.ts";
import { startS3Server } from "../support/s3-server.ts";
import { tempDir } from "../support/temp-dir.ts";

const bin = postgresBin();

type Given = {
  readonly store?: string;
  readonly base?: string;
  readonly prefix?: string;
  readonly logs?: string;
  readonly more?: string;
};

function severalBy(given: Given): CentralSettings {
  const { store = "postgres://accel@db.example/central", more = "" } = given;
  const { base = "https://c.example", prefix = "accel/", logs = "db.example/logs" } = given;
  return settingsOf(
    "/nowhere",
    `base_url: ${base}
key_file: /nowhere/central.key
store:
  url: ${store}
  instances: many
objects:
  s3:
    bucket: accel
    prefix: ${prefix}
request_logs:
  url: postgres://accel@${logs}
${more}`,
  );
}

test.each<readonly [string, Given, readonly string[], readonly string[]]>([
  ["nothing", {}, [], []],
  ["the URL", { base: "https://d.example" }, ["base_url"], []],
  ["the prefix", { prefix: "b/" }, ["objects.s3.prefix"], []],
  ["the database of logs", { logs: "db.example/others" }, ["request_logs.url"], []],
  ["its host", { logs: "other.example/logs" }, ["request_logs.url"], []],
  ["a limit", { more: "limits:\n  marks_burst: 7\n" }, [], ["limits.marks_burst"]],
  ["the level of logs", { more: "log_level: debug\n" }, [], []],
  ["the way to the store", { store: "postgres://b@proxy.example/central" }, [], []],
])("where %s is another, what differs is named", (_, given, refused, told) => {
  const theirs = readAlike(alikeText(alikeSettings(severalBy(given))));
  if (theirs === undefined) throw new Error("it is not read again");
  expect(differingSettings(alikeSettings(severalBy({})), theirs)).toEqual({ refused, told });
});

test("what is told holds no value, and what is no text of ours is read as nothing", () => {
  const text = alikeText(alikeSettings(severalBy({ base: "https://hidden.example" })));
  expect(text).not.toMatch(/hidden|accel|db\.example/);
  for (const raw of [null, "", "7", "null", "{}", '{"digests":7}'])
    expect(readAlike(raw)).toBeUndefined();
});

test("a clock is warned of beyond 5 s, is an error from a minute on, and no more when it is right", () => {
  const health = new Health(() => new Date(0));
  const tell = tellClock({ health, log: silentLog() });
  const toldAt = (aheadMs: number): unknown => {
    tell(aheadMs);
    return health.list().map(({ code, severity, text }) => [code, severity, text]);
  };
  const clock = "this central's clock is";
  const store = "that of the store's server";
  expect(toldAt(5_000)).toEqual([]);
  expect(toldAt(-7_000)).toEqual([["clock_differs", "warning", `${clock} 7 s behind ${store}`]]);
  expect(toldAt(1_200_000)).toEqual([
    ["clock_differs", "error", `${clock} 20 min ahead of ${store}`],
  ]);
  expect(toldAt(0)).toEqual([]);
});

test("other settings are a warning, an error where a central would answer from elsewhere, and no warning once they are alike", () => {
  const health = new Health(() => new Date(0));
  const tell = tellDiffering({ health, log: silentLog() });
  const toldOf = (...others: Parameters<typeof tell>[0]): unknown => {
    tell(others);
    return health.list().map(({ code, severity, text }) => [code, severity, text]);
  };
  const address = "two.example (127.0.0.1:8000)";
  const words = `the central at ${address} has other settings than this one:`;
  expect(toldOf()).toEqual([]);
  expect(toldOf({ address, refused: [], told: ["mail.from"] })).toEqual([
    ["settings_differ", "warning", `${words} \`mail.from\``],
  ]);
  expect(toldOf({ address, refused: ["base_url"], told: ["mail.from"] })).toEqual([
    ["settings_differ", "error", `${words} \`base_url\`, \`mail.from\``],
  ]);
  expect(toldOf()).toEqual([]);
});

describe.skipIf(bin === undefined)("check", { timeout: 120_000 }, () => {
  const opened = new AsyncDisposableStack();
  let postgres: Postgres;
  let store: Store & AsyncDisposable;
  let url = "";
  beforeAll(async () => {
    postgres = opened.use(await startPostgres(bin ?? "", { isDurable: true }));
    store = opened.use(await postgres.store("central", () => new Date(0)));
    const { host, port } = postgres.place("central");
    url = `postgres://accel@localhost:${port}/central?host=${host}`;
  }, 120_000);
  afterAll(async () => opened.disposeAsync(), 60_000);

  async function add(id: string, address: string, given: Given): Promise<void> {
    const settings = alikeText(alikeSettings(severalBy(given)));
    const central = { id, address, version: "1.0.0", whenStarted: "", keyProof: "", settings };
    await byKeys(store, async (tx) => addCentral(tx, central));
  }

  test("it refuses to join a central that works with another prefix, by its name, and not one that is gone or whose place this is", async () => {
    const settings = severalBy({ store: url });
    await add("a", "gone.example (127.0.0.1:8000)", { base: "https://d.example" });
    await add("b", `${hostname()} (${listenText(settings.listen)})`, { base: "https://e.example" });
    await expect(tryJoin(settings, 5)).resolves.toBeUndefined();
    await add("c", "two.example (127.0.0.1:8000)", { prefix: "b/" });
    const beating = new AbortController();
    const beats = every(
      5,
      async () => {
        const beat = store.updateTable("centrals").set((set) => ({ beat: set("beat", "+", 1) }));
        await beat.where("id", "in", ["b", "c"]).execute();
      },
      { stop: beating.signal, onError: () => undefined },
    );
    await expect(tryJoin(settings, 200)).rejects.toMatchObject({
      code: "SETTINGS_DIFFER",
      message:
        "the central at two.example (127.0.0.1:8000), which works on the same store, has another `objects.s3.prefix` than this one",
    });
    beating.abort();
    await beats;
  });

  test("with another prefix than that of one that works, it names the setting before the blob that is not there", async () => {
    using dir = tempDir();
    await using bucket = await startS3Server(bucketName);
    await postgres.server.run("postgres", "CREATE DATABASE logs TEMPLATE template0");
    await using checked = await postgres.store("checked", () => new Date(0));
    const place = (name: string): string => url.replace("/central?", `/${name}?`);
    const yaml = (bucketYaml: string): string =>
      `listen: 127.0.0.1:0
state_dir: ${dir.path}
base_url: https://c.example
key_file: ${dir.path}/central.key
store:
  url: ${place("checked")}
  instances: many
request_logs:
  url: ${place("logs")}
${bucketYaml}`;
    const theirs = objectsYaml(dir.path, bucket.port);
    const config = join(dir.path, "central.yaml");
    writeFileSync(config, yaml(theirs.replace("prefix: central/", "prefix: other/")));
    writeFileSync(join(dir.path, "central.key"), `${"07".repeat(32)}\n`, { mode: 0o600 });
    await setPlaceOfObjects(checked, "s3");
    const sha256 = parseSha256("ab".repeat(32));
    if (sha256 === undefined) throw new TypeError("a digest is a digest");
    const blob = { sha256, size: 1, when_created: "", when_dead: null, object_key: `${sha256}/1` };
    await checked.insertInto("blobs").values(blob).execute();
    const read = readSettings(centralFields, yaml(theirs));
    if (!read.ok) throw new Error(JSON.stringify(read.errors));
    const settings = alikeText(alikeSettings(read.settings));
    const central = { id: "a", address: "two.example (127.0.0.1:8000)", version: "1.0.0" };
    await byKeys(checked, async (tx) =>
      addCentral(tx, { ...central, whenStarted: "", keyProof: "", settings }),
    );
    const beating = new AbortController();
    const beat = async (): Promise<void> =>
      void (await checked
        .updateTable("centrals")
        .set((set) => ({ beat: set("beat", "+", 1) }))
        .execute());
    const beats = every(5, beat, { stop: beating.signal, onError: () => undefined });
    const said: string[] = [];
    const context = contextOf(["--config", config], beating.signal);
    const out = (text: string): void => void said.push(text);
    const checking = centralCheckCommand.run({ ...context, out });
    await expect(checking).rejects.toMatchObject({
      code: "SETTINGS_DIFFER",
      message: expect.stringContaining("has another `objects.s3.prefix` than this one"),
      hint: expect.stringContaining("`store.may_differ`"),
    });
    expect(said.join("")).toMatch(/lacks .*, the newest blob that the store names/);
    beating.abort();
    await beats;
  });

  test("a store without tables, or of the release before, has nobody to differ from", async () => {
    await postgres.server.run("postgres", "CREATE DATABASE bare TEMPLATE template0 LC_COLLATE 'C'");
    const bare = severalBy({ store: url.replace("/central?", "/bare?") });
    await expect(tryJoin(bare)).resolves.toBeUndefined();
    await postgres.server.run("bare", "CREATE TABLE centrals (id text, beat bigint)");
    await expect(tryJoin(bare)).resolves.toBeUndefined();
  });
});
