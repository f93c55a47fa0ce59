// A backend that is down, with real programs from the visitor to the mailbox: told to the chat and the subscriber once when it begins, once when it is over;
// what visitors asked is summed for the weekly report.

import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../src/base/sqlite.ts";
import { unreachableBackendType } from "../../src/wire/customer/notifications.ts";
import { startChatHook } from "../support/chat-hook.ts";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { browser, Edge } from "../support/edge.ts";
import { freePorts } from "../support/free-ports.ts";
import { startMailServer } from "../support/mail-server.ts";
import { until } from "../support/until.ts";

/** A report a minute, a look at what was reported twice a minute, and once a backoff of up to a minute before it. */
const toldWithinMs = 300_000;

test("a backend is down and comes back", { timeout: 900_000 }, async () => {
  await using edge = await Edge.prepare();
  await using mails = await startMailServer();
  await using hook = await startChatHook();
  appendFileSync(
    join(edge.dir, "central.yaml"),
    [
      `mail:\n  server: smtp://127.0.0.1:${mails.port}\n  starttls: never\n  from: accel@c.example`,
      "chat:\n  private_hooks: true",
      "alerts:\n  after: 0s\n  resolved_after: 0s",
      "",
    ].join("\n"),
  );
  await edge.startCentral();
  const [port = 0] = await freePorts(1);
  const script = new CustomerScript(edge, `http://127.0.0.1:${port}`, "alerts");
  await script.enrol();
  await edge.startAgent();
  const { api } = edge;
  const channel = { monitor_uid: "ops", chat_channel_name: "#ops", chat_hook_url: hook.url };
  expect((await api.post("/monitor-notification-channel/chat/", channel)).status).toBe(201);
  await api.post("/monitor-notification-channel/email/", { monitor_uid: "ops-mail" });
  const subscription = { notification_type: unreachableBackendType, email: "ops@x.org" };
  expect((await api.post("/notifications/monitor/subscribe/", subscription)).status).toBe(201);
  for (const step of script.steps().slice(0, 2)) await step.run();

  const visit = async (): Promise<number> =>
    (await edge.visit("/page/a", { host: domain, userAgent: browser })).status;
  await until("a visitor meets the dead backend", async () => (await visit()) === 502, 120_000);
  const visiting = async (isThere: () => boolean): Promise<void> => {
    await until(
      "it is told",
      async () => {
        await visit();
        return isThere();
      },
      toldWithinMs,
    );
  };
  await visiting(() => mails.received.length === 1 && hook.posted.length === 1);
  const [firing] = mails.received;
  const title = `Backend unreachable from edge-test: ${domain}`;
  expect([firing?.to, firing?.mail.subject]).toEqual([["ops@x.org"], `[ops-mail] ${title}`]);
  expect(hook.posted[0]?.body).toEqual({ text: expect.stringMatching(/^\[ops\] Backend unrea/) });

  await using backend = createServer((_request, response) => response.end("here"));
  const { promise, resolve } = Promise.withResolvers<void>();
  backend.listen(port, "127.0.0.1", () => resolve());
  await promise;
  await visiting(() => mails.received.length === 2 && hook.posted.length === 2);
  expect(mails.received[1]?.mail.subject).toBe(
    `[ops-mail] Resolved: edge-test reaches the backend of ${domain} again`,
  );

  const db = openSqlite(join(edge.dir, "central", "central.db"), { sync: "full", readonly: true });
  const row = db.prepare(
    "SELECT sum(requests) AS requests, sum(origin_errors) AS errors FROM traffic_days",
  );
  const sums = row.get() as { requests: number; errors: number };
  db.close();
  expect(sums.errors).toBeGreaterThan(0);
  expect(sums.requests).toBeGreaterThanOrEqual(sums.errors);
});
