// The keys of mail, reports and alerts: what is refused, with its key and reason, and the password that comes from a file.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readSettings } from "../../src/base/settings.ts";
import { checkCentral } from "../../src/central/main.ts";
import { alertRules, mailPassword } from "../../src/central/notices.ts";
import { centralFields } from "../../src/central/settings/fields.ts";
import { settingsOf } from "../support/central-whole.ts";
import { tempDir } from "../support/temp-dir.ts";

const from = "from: accel@example.com";

test.each([
  ["mail:\n  server: mail.example.com:25", "mail.server", "smtp://"],
  ["mail:\n  server: smtp://u:p@mail.example.com", "mail.server", "keys of their own"],
  ["mail:\n  server: smtp://mail.example.com/x", "mail.server", "smtp://"],
  ["mail:\n  server: smtp://mail.example.com", "mail.server", "needs `mail.from`"],
  [`mail:\n  ${from}\n  user: x`, "mail.user", "needs `mail.password_file`"],
  ['mail:\n  from: "A <a@b>, <c@d>"', "mail.from", "mail address"],
  ["mail:\n  from: nobody", "mail.from", "mail address"],
  ["mail:\n  password_file: secret", "mail.password_file", "absolute"],
  ["reports:\n  time_zone: Mars/Base", "reports.time_zone", "time zone"],
  ['reports:\n  at: "24:00"', "reports.at", "06:30"],
  ["reports:\n  weekday: someday", "reports.weekday", "one of"],
  ["alerts:\n  slow_response: 3s", "alerts.slow_response", "one of 100ms"],
  ["alerts:\n  slow_percent: 100", "alerts.slow_percent", "1 to 99"],
])("%j is refused", (yaml, key, reason) => {
  expect(readSettings(centralFields, yaml)).toMatchObject({
    ok: false,
    errors: [{ key, message: expect.stringContaining(reason) }],
  });
});

test.each([
  ["smtp://mail.example.com", { host: "mail.example.com", port: 587, isTls: false }],
  ["smtps://mail.example.com", { host: "mail.example.com", port: 465, isTls: true }],
  ["smtp://[::1]:25", { host: "::1", port: 25, isTls: false }],
])("%s", (server, value) => {
  const read = readSettings(centralFields, `mail:\n  server: ${server}\n  ${from}`);
  expect(read).toMatchObject({ ok: true, settings: { "mail.server": value } });
});

test("the password is one line of a file; `check` says what is wrong with it, and never what is in it", async () => {
  using dir = tempDir();
  const path = join(dir.path, "password");
  const settings = settingsOf(dir.path, `mail:\n  ${from}\n  user: u\n  password_file: ${path}\n`);
  await expect(checkCentral(settings)).rejects.toMatchObject({ code: "FILE_UNUSABLE" });
  writeFileSync(path, "two\nlines\n");
  await expect(checkCentral(settings)).rejects.not.toThrow("two");
  writeFileSync(path, " pass word \n");
  await checkCentral(settings);
  expect(mailPassword(settings)).toBe(" pass word ");
});

test.each([
  ["", { slowAboveS: 2, slowPercent: 50, slowRequests: 5 }],
  ["  slow_response: 100ms\n  slow_percent: 1\n", { slowAboveS: 0.1, slowPercent: 1 }],
  ["  slow_response: 500ms\n  slow_requests: 9\n", { slowAboveS: 0.5, slowRequests: 9 }],
  ["  slow_response: 2s\n", { slowAboveS: 2 }],
  ["  slow_response: 10s\n", { slowAboveS: 10 }],
])("slow is what alerts say: %j", (yaml, rules) => {
  using dir = tempDir();
  const settings = settingsOf(dir.path, yaml === "" ? "" : `alerts:\n${yaml}`);
  expect(alertRules(settings)).toMatchObject(rules);
});
