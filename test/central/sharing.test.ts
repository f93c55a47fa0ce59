// Several centrals are let in only where all of them reach what all of them must.

import { join } from "node:path";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { checkCentral, runCentral } from "../../src/central/main.ts";
import { refuseUnshared, unsharedParts } from "../../src/central/sharing.ts";
import { settingsOf } from "../support/central-whole.ts";
import { tempDir } from "../support/temp-dir.ts";

const files = "files of viewsets, packages and contents of sets (`objects.s3.bucket` is not set)";
const logs = "request logs and their numbers (`request_logs.url` is not set)";

test.each<readonly [string, Readonly<Record<string, unknown>>, readonly string[]]>([
  ["nothing", {}, [files, logs]],
  ["files", { "objects.s3.bucket": "accel" }, [logs]],
  ["logs", { "request_logs.url": { host: "db" } }, [files]],
  ["both", { "objects.s3.bucket": "accel", "request_logs.url": { host: "db" } }, []],
])("where %s is shared, the rest is named", (_, settings, parts) => {
  expect(unsharedParts(settings)).toEqual(parts);
});

const shared =
  "objects:\n  s3:\n    bucket: accel\nrequest_logs:\n  url: postgres://accel@db.example/logs\n";

function severalIn(dir: string, more = "") {
  const store = "store:\n  url: postgres://accel@db.example/central\n  instances: many\n";
  return settingsOf(join(dir, "state"), `key_file: ${dir}/central.key\n${store}${more}`);
}

test("`check` and a start refuse several centrals that do not share, before they touch anything", async () => {
  using dir = tempDir();
  const settings = severalIn(dir.path);
  const refused = {
    code: "SETTINGS_INVALID",
    message: expect.stringContaining(`and this is not: ${files}; ${logs}`),
  };
  await expect(checkCentral(settings)).rejects.toMatchObject(refused);
  const started = runCentral(settings, {
    version: "0.0.0",
    stop: new AbortController().signal,
    log: silentLog(),
  });
  await expect(started).rejects.toMatchObject(refused);
});

test("one that shares needs the key of the others, and makes none of its own", () => {
  using dir = tempDir();
  const settings = severalIn(dir.path, shared);
  expect(() => refuseUnshared(settings)).toThrow(
    expect.objectContaining({
      code: "FILE_UNUSABLE",
      message: `the key file ${dir.path}/central.key does not exist`,
    }),
  );
  writeFileSync(join(dir.path, "central.key"), "07".repeat(32));
  expect(() => refuseUnshared(settings)).not.toThrow();
});

test("one that is alone needs none of that", () => {
  using dir = tempDir();
  expect(() => refuseUnshared(settingsOf(dir.path))).not.toThrow();
});

test("days of request logs in files of one central are refused, until they are gone", async () => {
  using dir = tempDir();
  const settings = severalIn(dir.path, `${shared}logs:\n  retention_age: 30d\n`);
  const at = (name: string): string => join(dir.path, "state", "logs", name);
  writeFileSync(join(dir.path, "central.key"), "07".repeat(32));
  mkdirSync(at(""), { recursive: true });
  const names = ["2029-12-30.db", "2029-12-31.db", "2029-12-31.db-wal"];
  for (const name of [...names, "2029-12-01.db.broken"]) writeFileSync(at(name), "");
  const refused = (hint: RegExp): unknown =>
    expect.objectContaining({
      code: "SETTINGS_INVALID",
      message: `\`store.instances: many\` needs request logs where all centrals reach them, and 2 days of before (2029-12-30 to 2029-12-31) lie in files of ${at("")}: other centrals would answer without them`,
      hint: expect.stringMatching(hint),
    });
  await expect(checkCentral(settings)).rejects.toEqual(
    refused(/after 2030-01-31 at the latest; .* start central once with `instances: one`/),
  );
  writeFileSync(at("in-database"), "db.example/logs\n");
  await expect(checkCentral(settings)).rejects.toEqual(
    refused(/do without these days: move their files \(`2029-12-30\.db`/),
  );
  for (const name of names) renameSync(at(name), join(dir.path, name));
  await expect(checkCentral(settings)).resolves.toBeUndefined();
});
