// What the units give Node, for programs that a bench starts without systemd.

import { readFileSync } from "node:fs";

export function nodeOptionsOfUnit(): string {
  const unit = readFileSync(new URL("../../systemd/accel-agent.service", import.meta.url), "utf8");
  const options = /^Environment=NODE_OPTIONS=(.+)$/m.exec(unit)?.[1];
  if (options === undefined) throw new Error("the unit says nothing of NODE_OPTIONS");
  return options;
}
