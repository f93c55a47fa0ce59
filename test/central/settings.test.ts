// Central's settings: the file in the repository is the table, written out.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { centralDefaults, centralFields } from "../../src/central/settings/fields.ts";
import { readSettings } from "../../src/base/settings.ts";

const committed = readFileSync(join(import.meta.dirname, "../../config/central.yaml"), "utf8");

test("config/central.yaml is what the table says", () => {
  expect(committed).toBe(centralDefaults());
});

test("it is valid as it is, and the same as an empty file", () => {
  const read = readSettings(centralFields, committed);
  expect(read).toEqual(readSettings(centralFields, ""));
  expect(read.ok).toBe(true);
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
