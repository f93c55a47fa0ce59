// One of several centrals, as a program: `central-instance.ts FILE`. It takes for shared what a test lays where all reach it.

import { readFileSync } from "node:fs";
import { createLog } from "../../src/base/log.ts";
import { readSettings } from "../../src/base/settings.ts";
import { runCentral } from "../../src/central/main.ts";
import { centralFields } from "../../src/central/settings/fields.ts";

const read = readSettings(centralFields, readFileSync(process.argv[2] ?? "", "utf8"));
if (!read.ok) throw new Error(JSON.stringify(read.errors));
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort("SIGTERM"));
await runCentral(read.settings, {
  version: "0.0.0",
  stop: stop.signal,
  log: createLog("accel-central", "info"),
  unshared: () => [],
});
