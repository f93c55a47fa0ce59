// The agent's unit and its level go together: a hand-over keeps the unit that the process before was started by, so whoever changes what the unit says, and a process needs, raises the level.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { unitLevel, unitLevelVariable } from "../../src/base/unit-level.ts";

const unit = readFileSync(join(import.meta.dirname, "../../systemd/accel-agent.service"), "utf8");
/** What systemd goes by as soon as it has read the unit again, whatever process runs. */
const ofNoProcess = /^(?:#|RestartSec=|ExecStop(?:Post)?=|$)/;
const said = unit
  .split("\n")
  .filter((line) => !ofNoProcess.test(line) && !line.includes(unitLevelVariable));

test("the unit says the level that the code has", () => {
  expect(unit).toContain(`\nEnvironment=${unitLevelVariable}=${unitLevel}\n`);
});

test("what the unit says is what had this level before: otherwise raise it where a process needs what is new, and note the digest here", () => {
  const digest = createHash("sha256").update(said.join("\n")).digest("hex").slice(0, 16);
  expect({ level: unitLevel, digest }).toEqual({ level: "2", digest: "591967790b29009b" });
});
