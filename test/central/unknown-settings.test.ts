// A key of central's settings that nobody knows is a warning from the start on, until a reload meets none.

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { callControl } from "../../src/base/control-socket.ts";
import { serveCommand } from "../../src/central/main.ts";
import { contextOf } from "../cli/command-rig.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

test("central warns of keys that nobody knows, until a reload meets none", async () => {
  using dir = tempDir();
  const config = join(dir.path, "central.yaml");
  const stateDir = join(dir.path, "state");
  const known = [
    `state_dir: ${stateDir}`,
    "listen: 127.0.0.1:0",
    "base_url: http://127.0.0.1:1",
    "log_level: fatal",
  ].join("\n");
  writeFileSync(config, `${known}\nbase_urll: x\n`);
  const stop = new AbortController();
  const reloads: (() => void)[] = [];
  const onReload = (reload: () => void): void => void reloads.push(reload);
  const context = { ...contextOf(["--config", config], stop.signal), onReload };
  const served = Promise.resolve(serveCommand.run(context));
  const socket = join(stateDir, "control.sock");
  const warned = async (): Promise<string> => {
    const signal = AbortSignal.timeout(10_000);
    const answers = await Array.fromAsync(callControl(socket, "status", {}, signal));
    return JSON.stringify(answers);
  };
  try {
    const answer = await until(
      "central answers",
      async () => existsSync(socket) && (await warned()),
    );
    expect(answer).toMatch(/settings_unknown.*:5: base_urll unknown key/);
    writeFileSync(config, known);
    for (const reload of reloads) reload();
    expect(await warned()).not.toContain("settings_unknown");
  } finally {
    stop.abort();
    await served;
  }
});
