// The keys of the database of request logs: what is refused, with its key and reason.

import { expect, test } from "vitest";
import { readSettings } from "../../src/base/settings.ts";
import { logDatabase, logsText } from "../../src/central/request-logs.ts";
import { centralFields } from "../../src/central/settings/fields.ts";
import { settingsOf } from "../support/central-whole.ts";

test.each([
  ["request_logs:\n  url: mysql://a@db/logs\n", "request_logs.url", "must be postgres://"],
  [
    "request_logs:\n  url: postgres://a:secret@db/logs\n",
    "request_logs.url",
    "which `request_logs.password_file` names",
  ],
  [
    "request_logs:\n  url: postgres://a@db/logs?sslmode=x\n",
    "request_logs.url",
    "TLS is `request_logs.tls`",
  ],
  [
    "store:\n  url: postgres://a@db/one\nrequest_logs:\n  url: postgres://b@db/one\n",
    "request_logs.url",
    "must be another database than `store.url`",
  ],
  [
    "request_logs:\n  password_file: /x\n",
    "request_logs.password_file",
    "needs `request_logs.url`",
  ],
  ["request_logs:\n  ca_file: /x\n", "request_logs.ca_file", "needs `request_logs.url`"],
  [
    "request_logs:\n  url: postgres://a@db/logs\n  tls: none\n",
    "request_logs.tls",
    "must be verify-full",
  ],
])("%s is refused", (yaml, key, words) => {
  expect(readSettings(centralFields, yaml)).toMatchObject({
    ok: false,
    errors: [{ key, message: expect.stringContaining(words) }],
  });
});

test("the place is told without a password; without the key request logs are files", () => {
  const store = "store:\n  url: postgres://a@db/store\n";
  const own = "request_logs:\n  url: postgres://b@db:6000/logs\n  password_file: /p\n";
  const settings = settingsOf("/var/lib/x", `${store}${own}`);
  expect(logDatabase(settings)).toEqual({
    host: "db",
    port: 6000,
    database: "logs",
    user: "b",
    passwordFile: "/p",
    tls: { ca: undefined },
  });
  expect(logsText(settings)).toBe("postgres://b@db:6000/logs");
  expect(logDatabase(settingsOf("/var/lib/x", store))).toBeUndefined();
  expect(logsText(settingsOf("/var/lib/x"))).toBe("/var/lib/x/logs");
});
