// What nginx keeps resident for a `geo` of the same ranges: its master process alone, without and with them.

import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { SetElement } from "../../src/core/addresses/set-digest.ts";
import { tempDir } from "../../test/support/temp-dir.ts";
import { until } from "../../test/support/until.ts";

/** Bytes that the ranges take. Undefined: there is no nginx here. */
export async function nginxGeoBytes(ranges: readonly SetElement[]): Promise<number | undefined> {
  try {
    const empty = await residentBytes([]);
    return (await residentBytes(ranges)) - empty;
  } catch {
    return undefined;
  }
}

async function residentBytes(ranges: readonly SetElement[]): Promise<number> {
  using dir = tempDir();
  const path = (name: string): string => join(dir.path, name);
  writeFileSync(path("geo"), ranges.map(({ range, bot }) => `${range} ${bot};\n`).join(""));
  writeFileSync(
    path("nginx.conf"),
    [
      `daemon off; master_process off; pid ${path("pid")}; error_log ${path("error.log")};`,
      "events {} http { access_log off;",
      `geo $bot { default ""; include ${path("geo")}; }`,
      `server { listen unix:${path("socket")}; location / { return 200 $bot; } } }`,
    ].join("\n"),
  );
  const nginx = spawn("nginx", ["-p", dir.path, "-c", path("nginx.conf")], { stdio: "ignore" });
  const failed = Promise.withResolvers<never>();
  nginx.once("error", failed.reject);
  nginx.once("exit", () => failed.reject(new Error("nginx ended")));
  failed.promise.catch(() => undefined);
  try {
    const status = `/proc/${nginx.pid}/status`;
    const started = until("nginx", () => readFileSync(path("pid"), "utf8") !== "", 60_000);
    await Promise.race([started, failed.promise]);
    await sleep(300); // The pid is written before the last page is touched.
    const [, kib = "0"] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(status, "utf8")) ?? [];
    return Number(kib) * 1_024;
  } finally {
    nginx.kill();
  }
}
