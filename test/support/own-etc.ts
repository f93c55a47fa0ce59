// Commands of the agent where /etc is an empty one of their own: what they say of the settings of a unit, which lie there and nowhere else. As root only (`canMountDisks`).

import { spawnSync } from "node:child_process";
import { mainFile, node } from "./process.ts";

/** Runs lines of a shell, to which `"$@"` is the agent's program. What they write to /etc is gone behind them. */
export function withOwnEtc(...lines: readonly string[]) {
  const script = ["mount -t tmpfs -o mode=755 none /etc", ...lines].join("\n");
  const command = ["--mount", "sh", "-ec", script, "sh", node, mainFile, "agent"];
  const { status, stdout, stderr } = spawnSync("unshare", command, { encoding: "utf8", input: "" });
  return { status, out: stdout, err: stderr };
}
