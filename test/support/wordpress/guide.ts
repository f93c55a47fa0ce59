// What docs/guides/wordpress.md tells its reader to set, read out of it.

import { readFileSync } from "node:fs";
import { join } from "node:path";

const guides = join(import.meta.dirname, "../../../docs/guides");

/** The settings of the domain in the first devlove of the guide. */
export function wordpressDevlove(): Readonly<Record<string, unknown>> {
  const text = readFileSync(join(guides, "wordpress.md"), "utf8");
  const [, json] = /```json\n(.*?)```/s.exec(text) ?? [];
  if (json === undefined) throw new Error("the guide has no devlove");
  const { domains } = JSON.parse(json) as { domains: Record<string, Record<string, unknown>> };
  const [site] = Object.values(domains);
  if (site === undefined) throw new Error("the guide's devlove has no domain");
  return site;
}

export function wordpressPlugin(): string {
  return join(guides, "accel-edge.php");
}

/** The command that the guide gives to cron, for another domain at another address. */
export function wordpressCron(domain: string, url: string): string {
  const text = readFileSync(join(guides, "wordpress.md"), "utf8");
  const [, line] = /^\* \* \* \* \* +(.+)$/m.exec(text) ?? [];
  if (line === undefined) throw new Error("the guide has no line for cron");
  return line.replace("www.example.com", domain).replace("http://192.0.2.10", url);
}
