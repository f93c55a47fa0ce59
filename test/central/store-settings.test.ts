// The keys of the store: what is refused, with its key and reason, and that no password is ever shown.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readSettings } from "../../src/base/settings.ts";
import { checkCentral } from "../../src/central/main.ts";
import { centralFields } from "../../src/central/settings/fields.ts";
import { postgresPlace, storeText } from "../../src/central/store-opening.ts";
import { tempDir } from "../support/temp-dir.ts";

const read = (yaml: string) => readSettings(centralFields, yaml);

test.each([
  ["postgres://accel@db.example.com/central", "db.example.com", 5432, "central"],
  ["postgresql://accel@db.example.com:6000/central", "db.example.com", 6000, "central"],
  ["postgres://accel@[2001:db8::1]:6000/central", "2001:db8::1", 6000, "central"],
  ["postgres://accel@localhost/central?host=/run/postgresql", "/run/postgresql", 5432, "central"],
  ["postgres://accel@db/a%20name", "db", 5432, "a name"],
])("%s", (url, host, port, database) => {
  const { settings } = Object.assign({ settings: undefined }, read(`store:\n  url: "${url}"\n`));
  expect(settings?.["store.url"]).toEqual({ host, port, database, user: "accel" });
});

test.each([
  ["url: mysql://accel@db/central", "store.url", "must be postgres://user@host:5432/database"],
  ["url: postgres://db/central", "store.url", "must be postgres://"],
  ["url: postgres://accel@db", "store.url", "must be postgres://"],
  ["url: postgres://accel@db/a/b", "store.url", "must be postgres://"],
  ["url: 5", "store.url", "must be postgres://"],
  ["url: postgres://accel@db/central?sslmode=disable", "store.url", "`sslmode` cannot stand in it"],
  ["url: postgres://accel@db/central?host=other", "store.url", "the directory of a socket"],
  ["password_file: /x", "store.password_file", "needs `store.url`"],
  ["ca_file: /x", "store.ca_file", "needs `store.url`"],
  ["url: postgres://accel@db/central\n  tls: none", "store.tls", "must be verify-full"],
  ["url: postgres://accel@db/central\n  tls: require", "store.tls", "verify-full, none"],
  ["url: postgres://accel@db/central\n  connections: 1", "store.connections", "from 2 to 200"],
  ["instances: many", "store.instances", "many needs `store.url`"],
  ["url: postgres://accel@db/central\n  instances: many", "store.instances", "needs `key_file`"],
  ["instances: two", "store.instances", "one, many"],
])("%s is refused", (yaml, key, words) => {
  expect(read(`store:\n  ${yaml}\n`)).toMatchObject({
    ok: false,
    errors: [{ key, message: expect.stringContaining(words) }],
  });
});

test.each(["127.0.0.1", "[::1]", "localhost", "localhost/central?host=/run/postgresql&x"])(
  "without TLS: %s is of this host",
  (host) => {
    const url = `postgres://accel@${host.replace("&x", "")}${host.includes("/") ? "" : "/central"}`;
    expect(read(`store:\n  url: ${url}\n  tls: none\n`).ok).toBe(true);
  },
);

test.each([
  "postgres://accel:hunter2@db/central",
  "postgres:/accel:hunter2@db/central",
  "postgres://accel:hunter2@db:port/central",
  "postgres://accel@db/central?password=hunter2",
])("what %s holds is not in the message that refuses it", (url) => {
  const outcome = read(`store:\n  url: ${url}\n`);
  expect(outcome.ok).toBe(false);
  expect(JSON.stringify(outcome)).not.toContain("hunter2");
});

test("the password is read at each connection; neither settings nor names of the store hold it", async () => {
  using dir = tempDir();
  const file = join(dir.path, "password");
  writeFileSync(file, "hunter2\n");
  const outcome = read(
    `state_dir: ${dir.path}\nstore:\n  url: postgres://accel@db/central\n  password_file: ${file}\n`,
  );
  if (!outcome.ok) throw new TypeError(JSON.stringify(outcome));
  const { settings } = outcome;
  const place = postgresPlace(settings);
  expect(place?.password()).toBe("hunter2");
  writeFileSync(file, "another\n");
  expect(place?.password()).toBe("another");
  expect(storeText(settings)).toBe("postgres://accel@db:5432/central");
  expect(JSON.stringify([settings, place])).not.toMatch(/hunter2|another/);
  await expect(checkCentral(settings)).resolves.toBeUndefined();
  writeFileSync(file, "two\nlines\n");
  await expect(checkCentral(settings)).rejects.toMatchObject({
    code: "FILE_UNUSABLE",
    message: expect.stringMatching(/store\.password_file .* it must hold one line/),
  });
});
