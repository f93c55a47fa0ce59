// What the link tells an operator to do about a failure.

import { expect, test } from "vitest";
import { LinkTelemetry } from "../../../src/agent/link/link-telemetry.ts";
import { Health } from "../../../src/base/health.ts";
import { silentLog } from "../../../src/base/log.ts";
import { Registry } from "../../../src/base/metrics.ts";

test.each([
  [{ code: "SQLITE_FULL", message: "database or disk is full" }, /make room/],
  [{ code: "ENOSPC", message: "ENOSPC: no space left on device, write" }, /make room/],
  [{ code: "SQLITE_READONLY", message: "attempt to write a readonly database" }, /may write in/],
])("agent.db that cannot be written: %j", ({ code, message }, hint) => {
  const now = () => new Date(0);
  const health = new Health(now);
  const telemetry = new LinkTelemetry({ registry: new Registry(), health, log: silentLog(), now });
  telemetry.unwritable(Object.assign(new Error(message), { code }));
  expect(health.list()).toMatchObject([
    { code: "state_unwritable", hint: expect.stringMatching(hint) },
  ]);
});
