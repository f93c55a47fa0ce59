// One level for all threads: those that run hear of a change, those that start later begin with it.

import { expect, test } from "vitest";
import { silentLog, followLogLevel, LogLevels } from "../../src/base/log.ts";
import { until } from "../support/until.ts";

test("a thread's logger follows the level, a child made before included", async () => {
  const own = silentLog();
  const levels = new LogLevels(own, "info");
  const { level, port } = levels.openThread();
  expect(level).toBe("info");
  const log = silentLog().child({ worker: 1 });
  log.level = level;
  followLogLevel(log, port);
  levels.set("debug");
  expect(own.level).toBe("debug");
  await until("the thread heard it", () => log.level === "debug");
  const later = levels.openThread();
  expect(later.level).toBe("debug");
  port.close();
  later.port.close();
});
