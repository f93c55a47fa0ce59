// HAProxy before several centrals, by the very block of docs/operations/cluster.md.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { OneCentral } from "./several-centrals.ts";

/** Listens at the port of all `addresses`. */
export function haproxyConfig(
  port: number,
  centrals: readonly Pick<OneCentral, "port">[],
  addresses: readonly string[] = ["127.0.0.1"],
): string {
  const page = readFileSync(join(import.meta.dirname, "../../docs/operations/cluster.md"), "utf8");
  const [, block = ""] = /```haproxy\n(.*?)```/s.exec(page) ?? [];
  const servers = centrals.map((one, no) => `  server central-${no} 127.0.0.1:${one.port}`);
  const binds = addresses.map((address) => `  bind ${address}:${port}`);
  return `${block
    .replace(/^ {2}bind .*$/m, binds.join("\n"))
    .replaceAll(/^ {2}server .*\n/gm, "")}${servers.join("\n")}\n`;
}
