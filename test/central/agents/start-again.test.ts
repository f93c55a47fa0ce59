// A central that is started again: agents that it heard a moment ago are on their way, and whoever waits for a proof waits for them.

import { join } from "node:path";
import { expect, test } from "vitest";
import { call, settingsOf, start } from "../../support/central-whole.ts";
import { statesOf } from "../../support/clear-states.ts";
import { freePorts } from "../../support/free-ports.ts";
import { startLinkedAgent } from "../../support/linked-agent.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const domain = "www.again.example";

test("a clear right behind a start waits for the agents of before it, and is not told as pending at once", async () => {
  using dir = tempDir();
  await using stack = new AsyncDisposableStack();
  const [port = 0] = await freePorts(1);
  const settings = {
    ...settingsOf(join(dir.path, "central")),
    listen: { host: "127.0.0.1", port },
  };
  const first = await start(settings);
  const trial = await call(first.url, "POST", "/trial/", undefined, { username: "alice" });
  const token = String(trial["token"]);
  const site = await call(first.url, "POST", "/deployment-site/", token, { tags: "all" });
  const body = { name: domain, link_to_deployment_sites_with_tags: "all" };
  await call(first.url, "POST", "/domain/", token, body);
  const names = { name16: String(site["name16"]), secret16: String(site["secret16"]) };
  stack.use(startLinkedAgent(first.url, names));
  await until("it is connected", async () =>
    JSON.stringify(await call(first.url, "GET", "/fleet/", token)).includes('"link":"channel"'),
  );
  await first[Symbol.asyncDispose]();
  const again = stack.use(await start(settings));
  const clear = await call(
    again.url,
    "POST",
    `/clear-accelerator-cache/${domain}/?wait=30`,
    token,
    { url_path_patterns: ["path:a"] },
  );
  expect(statesOf(clear)).toEqual(["applied"]);
});
