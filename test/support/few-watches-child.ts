// The sites of a host as an agent watches them, in a process that has few file watches: says each health code and each changed view, a line each.
// Run as: unshare -Ur sh -c 'echo 4 > /proc/sys/user/max_inotify_watches; exec node few-watches-child.ts DIR'

import { join } from "node:path";
import { openLocalSites } from "../../src/agent/viewset/local-sites.ts";
import { Health } from "../../src/base/health.ts";
import { silentLog } from "../../src/base/log.ts";
import { Registry } from "../../src/base/metrics.ts";

/** What a line begins with. */
export type Told = "health" | "views" | "devlove" | "ready";

const dir = process.argv[2] ?? "";
const say = (told: Told, what = ""): void => void process.stdout.write(`${told} ${what}\n`);
const health = new Health(() => new Date(0));
const sites = await openLocalSites({
  sites: [
    {
      domain: "www.example.com",
      views_dir: join(dir, "views"),
      devlove_file: join(dir, "devlove.json"),
    },
  ],
  watchViews: true,
  names: () => undefined,
  backendRules: {},
  onChange: (domain) => say("devlove", domain),
  onViews: (_, paths) => say("views", paths?.join(" ") ?? "everything"),
  registry: new Registry(),
  health,
  log: silentLog(),
  stop: new AbortController().signal,
});
await sites.watching();
for (const { code, text } of health.list()) say("health", `${code} ${text}`);
say("ready");
