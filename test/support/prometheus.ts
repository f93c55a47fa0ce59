// A real Prometheus for a test: its own directory, loopback, stopped with the test.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePorts } from "./free-ports.ts";
import { tempDir } from "./temp-dir.ts";
import { until } from "./until.ts";

/** Where Prometheus is missing its tests skip, and say how to get it. */
export const prometheusMissing =
  spawnSync("prometheus", ["--version"]).status !== 0 ||
  spawnSync("promtool", ["--version"]).status !== 0;
export const prometheusHint = "needs prometheus and promtool: apt-get install prometheus";

export type Target = {
  readonly labels: Readonly<Record<string, string>>;
  readonly scrapeUrl: string;
  readonly health: string;
  readonly lastError: string;
};

export type Prometheus = AsyncDisposable & {
  /** Waits until every target is up; all of them as they are then, or at the end of the wait. */
  targets(count: number): Promise<readonly Target[]>;
  query(expression: string): Promise<unknown>;
};

/** `scrapeConfigs` as the customer API returned it: JSON is YAML. */
export async function startPrometheus(
  scrapeConfigs: readonly unknown[],
  ruleFiles: readonly string[] = [],
): Promise<Prometheus> {
  const dir = tempDir();
  const [port] = await freePorts(1);
  const config = join(dir.path, "prometheus.yml");
  writeFileSync(
    config,
    JSON.stringify({
      global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
      rule_files: ruleFiles,
      scrape_configs: scrapeConfigs,
    }),
  );
  const checked = spawnSync("promtool", ["check", "config", config], { encoding: "utf8" });
  if (checked.status !== 0) throw new Error(checked.stdout + checked.stderr);
  const args = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(dir.path, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const child = spawn("prometheus", args, { stdio: "ignore" });
  const base = `http://127.0.0.1:${port}/api/v1`;
  const ask = async (path: string): Promise<Response> => fetch(`${base}${path}`);
  const get = async (path: string): Promise<Record<string, unknown>> => {
    // A kept connection may be closed while a question is on its way in it: that is asked once more, as each browser does.
    const answered = await ask(path).catch(async () => ask(path));
    return ((await answered.json()) as { data: Record<string, unknown> }).data;
  };
  return {
    async targets(count) {
      let seen: readonly Target[] = [];
      const isUp = async (): Promise<boolean> => {
        const active = await get("/targets?state=active");
        seen = (active as { activeTargets: readonly Target[] }).activeTargets;
        return seen.length >= count && seen.every(({ health }) => health === "up");
      };
      // A scrape may be too slow once, on a busy machine; what a target says that stays down is for the caller to see.
      await until("all targets are up", isUp).catch(() => undefined);
      return seen;
    },
    query: async (expression) =>
      (await get(`/query?query=${encodeURIComponent(expression)}`))["result"],
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) {
        const exited = once(child, "exit");
        child.kill("SIGKILL");
        await exited;
      }
      dir[Symbol.dispose]();
    },
  };
}

/** What promtool finds wrong with an exposition; "" when it is clean. */
export function lintMetrics(exposition: string): string {
  const { stdout, stderr, status } = spawnSync("promtool", ["check", "metrics"], {
    input: exposition,
    encoding: "utf8",
  });
  return status === 0 ? "" : stdout + stderr;
}
