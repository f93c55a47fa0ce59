// A node_exporter that does not answer in time. It takes as long as the agent waits for one, and so has a file of its own.

import type { RequestListener } from "node:http";
import { expect, test } from "vitest";
import { startAdminServer } from "../../../src/agent/admin/admin-server.ts";
import { LastHour } from "../../../src/agent/admin/last-hour.ts";
import { silentLog } from "../../../src/base/log.ts";
import { listenHttp } from "../../../src/base/http-listener.ts";
import { statusOf } from "./status-of.ts";

/** What the agent answers for the host's metrics. */
async function ask(exporter: RequestListener): Promise<string> {
  const local = { host: "127.0.0.1", port: 0 };
  await using real = await listenHttp(exporter, local, { graceMs: 20 });
  await using admin = await startAdminServer({
    listen: local,
    nodeExporterUrl: `http://127.0.0.1:${real.port}/metrics`,
    metrics: async () => [],
    oldPages: false,
    status: async () => statusOf({}),
    lastHour: new LastHour(),
    zone: () => "UTC",
    now: () => new Date(1_000),
    log: silentLog(),
  });
  const answer = await fetch(`http://127.0.0.1:${admin.port}/metrics/node_exporter`);
  return `${answer.status} ${await answer.text()}`;
}

test("a node_exporter that says nothing, or begins and does not end, is given up with the reason: scrapes have ten seconds", async () => {
  const scrape = AbortSignal.timeout(30_000);
  const answers = Promise.all([
    ask(() => undefined),
    ask((_, response) => void response.writeHead(200).write("node_load1 5\n")),
  ]);
  const tooLate = new Promise<never>((_, reject) => {
    scrape.addEventListener("abort", () => reject(new Error("it is waited for")));
  });
  for (const answer of await Promise.race([answers, tooLate]))
    expect(answer).toMatch(/^502 http:\/\/127\.0\.0\.1:\d+\/metrics cannot be reached: .*Timeout/);
});
