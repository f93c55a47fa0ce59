// A backend that is down, as two edge servers see it, with real programs from the visitor to the mailbox: told to the chat and the subscriber once for each edge
// when it begins, once for each when it is over; what visitors asked is summed for the weekly report.

import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../src/base/sqlite.ts";
import { unreachableBackendType } from "../../src/wire/customer/notifications.ts";
import { startChatHook } from "../support/chat-hook.ts";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { browser, Edge, visit as visitPort } from "../support/edge.ts";
import { freePorts } from "../support/free-ports.ts";
import { startFurtherAgent, type Site } from "../support/further-agent.ts";
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

  const elsewhere = (await api.post("/deployment-site/", { tags: "far" })).body as Site;
  const link = { name: domain, deployment_site_id: elsewhere.id };
  expect((await api.put(`/domain/${domain}/`, link)).status).toBe(200);
  await using far = await startFurtherAgent(edge, elsewhere, "edge-far");

  const visitor = { host: domain, userAgent: browser };
  const visit = async (): Promise<readonly number[]> =>
    (
      await Promise.all([edge.visit("/page/a", visitor), visitPort(far.port, "/page/a", visitor)])
    ).map(({ status }) => status);
  const isDead = async (): Promise<boolean> => (await visit()).every((status) => status === 502);
  await until("visitors of both meet the dead backend", isDead, 120_000);

  /** How often each edge stands in messages of the phase. They come together or apart, as the edges happened to report. */
  const edgesIn = (texts: readonly string[], isResolved: boolean): Record<string, number> => {
    const phase = texts.filter((text) => /Resolved: /.test(text) === isResolved).join("\n");
    const seenFrom = [...phase.matchAll(/seen from (.*?)\)?$/gim)].map(([, edges]) => edges ?? "");
    const count = (name: string): number => seenFrom.filter((one) => one.includes(name)).length;
    return { near: count("edge-test"), far: count("edge-far") };
  };
  const chats = (): readonly string[] =>
    hook.posted.map(({ body }) => (body as { readonly text: string }).text);
  const once = { near: 1, far: 1 };
  const told = async (isResolved: boolean): Promise<void> => {
    const isTold = async (): Promise<boolean> => {
      await visit();
      const { near = 0, far = 0 } = edgesIn(chats(), isResolved);
      return near > 0 && far > 0 && mails.received.length === hook.posted.length;
    };
    await until("it is told of both", isTold, toldWithinMs);
    expect(edgesIn(chats(), isResolved)).toEqual(once);
  };
  await told(false);
  const mailsFiring = mails.received.length;
  for (const { to, mail } of mails.received) {
    expect(to).toEqual(["ops@x.org"]);
    expect(mail.subject).toMatch(/^\[ops-mail\] Backend unreachable from (?:edge-|2 edge servers)/);
  }

  await using backend = createServer((_request, response) => response.end("here"));
  const { promise, resolve } = Promise.withResolvers<void>();
  backend.listen(port, "127.0.0.1", () => resolve());
  await promise;
  await told(true);
  for (const { mail } of mails.received.slice(mailsFiring))
    expect(mail.subject).toMatch(
      /^\[ops-mail\] Resolved: (?:edge-\w+ reaches|2 edge servers reach) /,
    );
  // Nothing more was said of either meanwhile.
  expect(edgesIn(chats(), false)).toEqual(once);

  const db = openSqlite(join(edge.dir, "central", "central.db"), { sync: "full", readonly: true });
  const row = db.prepare(
    "SELECT sum(requests) AS requests, sum(origin_errors) AS errors FROM traffic_days",
  );
  const sums = row.get() as { requests: number; errors: number };
  db.close();
  expect(sums.errors).toBeGreaterThan(0);
  expect(sums.requests).toBeGreaterThanOrEqual(sums.errors);
});
