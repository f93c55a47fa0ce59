// Central's settings: the file in the repository is the table, written out.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { centralDefaults, centralFields } from "../../src/central/settings/fields.ts";
import { readSettings } from "../../src/base/settings.ts";
import { expectGenerated } from "../support/generated.ts";

const committed = readFileSync(join(import.meta.dirname, "../../config/central.yaml"), "utf8");

test("config/central.yaml is what the table says", () => {
  expectGenerated("config/central.yaml", () => centralDefaults());
});

test("it is valid as it is, and the same as an empty file", () => {
  const read = readSettings(centralFields, committed);
  expect(read).toEqual(readSettings(centralFields, ""));
  expect(read.ok).toBe(true);
});

/** In the place of a key with dots. */
function yamlOf(key: string, value: number | string): string {
  const [section = "", name] = key.split(".");
  return JSON.stringify({ [section]: name === undefined ? value : { [name]: value } });
}

test.each([
  ["limits.trials_per_address", 1, 1_000_000],
  ["limits.trials_total", 1, 10_000_000],
  ["limits.marks_per_second", 1, 100_000],
  ["limits.marks_burst", 1, 10_000_000],
  ["limits.bot_elements", 1, 100_000_000],
  ["limits.mails_per_address", 1, 100_000],
  ["limits.messages_per_customer", 1, 10_000_000],
  ["limits.recoveries_per_address", 1, 1_000_000],
  ["alerts.slow_percent", 1, 99],
  ["alerts.slow_requests", 1, 1_000_000],
])("%s is %d to %d", (key, least, most) => {
  for (const value of [least, most])
    expect(readSettings(centralFields, yamlOf(key, value))).toMatchObject({
      ok: true,
      settings: { [key]: value },
    });
  for (const value of [least - 1, most + 1, least + 0.5])
    expect(readSettings(centralFields, yamlOf(key, value))).toMatchObject({
      ok: false,
      errors: [{ key, message: expect.stringContaining(`from ${least} to ${most}`) }],
    });
});

test.each([
  ["logs.retention_age", ["1d", "3650d"], ["23h", "3651d"]],
  ["logs.retention_size", ["64MiB", "1024TiB"], ["63MiB", "1025TiB"]],
  ["audit.retention_age", ["1d"], ["23h"]],
  ["package.size_max", ["1MiB", "2GiB"], ["1023KiB", "2049MiB"]],
  ["mail.timeout", ["1s", "100s"], ["999ms", "101s"]],
  ["mail.keep", ["1d"], ["23h"]],
  ["chat.timeout", ["1s", "60s"], ["999ms", "61s"]],
  ["alerts.after", ["0s", "1d"], ["25h"]],
  ["alerts.resolved_after", ["0s", "1d"], ["25h"]],
])("%s takes %j, not %j", (key, taken, refused) => {
  for (const value of taken)
    expect(readSettings(centralFields, yamlOf(key, value)).ok, value).toBe(true);
  for (const value of refused)
    expect(readSettings(centralFields, yamlOf(key, value))).toMatchObject({
      ok: false,
      errors: [{ key }],
    });
});

test.each([
  ["listen: 8000", 1, "listen", 'must be "host:port"'],
  ["\nstate_dri: /x", 2, "state_dri", "did you mean state_dir?"],
  ["trusted_proxies: [10.0.0.1/8]", 1, "trusted_proxies", "the network is 10.0.0.0/8"],
  ["logs:\n  retention_age: 30", 2, "logs.retention_age", "with a unit"],
  ["log_level: loud", 1, "log_level", "must be one of"],
])("%j is refused", (yaml, line, key, reason) => {
  expect(readSettings(centralFields, yaml)).toMatchObject({
    ok: false,
    errors: [{ line, key, message: expect.stringContaining(reason) }],
  });
});
