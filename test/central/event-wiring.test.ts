// Central whole, a page that listens and an agent: links that open and close, what is proved, what an operator and a job change, and a stop.

import { join } from "node:path";
import { expect, test } from "vitest";
import { callControl } from "../../src/base/control-socket.ts";
import { call, newSite, settingsOf, start } from "../support/central-whole.ts";
import { listenToEvents, type HeardEvent } from "../support/event-listener.ts";
import { connectAgent } from "../support/fake-agent.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const domain = "www.example.com";

test("a page hears of a host that comes, proves a clear and goes, and of the end", async () => {
  using dir = tempDir();
  await using central = await start(settingsOf(dir.path));
  const site = await newSite(central.url);
  const { token } = site;
  await call(central.url, "POST", "/domain/", token, { name: domain, deployment_site_id: site.id });
  using page = await listenToEvents(central.url, { authorization: `Token ${token}` });
  await page.next("hello");
  const heard = async (topic: string, after: number): Promise<HeardEvent> =>
    until(`a hint of ${topic}`, () =>
      page.heard.slice(after).find(({ data }) => String(data["topics"]).includes(topic)),
    );
  const agent = await connectAgent(central.agents, site.name16, site.secret16);
  using channel = await agent.channel();
  channel.hello(null);
  await heard("fleet", 1);
  const fleet = async (): Promise<unknown> => call(central.url, "GET", "/fleet/", token);
  expect(await fleet()).toMatchObject({ sites: [{ instances: [{ link: "channel" }] }] });
  await channel.next("resync");
  const before = page.heard.length;
  const path = `/clear-accelerator-cache/${domain}/?wait=0`;
  await call(central.url, "POST", path, token, { url_path_patterns: ["path:css"] });
  const clear = await heard("clears", before);
  expect(clear.data["domain"]).toEqual(domain);
  const proved = page.heard.length;
  const { head_seq: seq } = await channel.next("welcome");
  channel.receipt(seq + 1, "applied", { snapshot: true });
  await channel.next("receipt_ack");
  expect((await heard("clears", proved)).data).toEqual({ topics: ["clears", "fleet"], domain });
  const gone = page.heard.length;
  channel.socket.close();
  expect((await heard("fleet", gone)).data).toEqual({ topics: ["fleet"] });
  expect(await fleet()).toMatchObject({ sites: [{ instances: [{ link: "none" }] }] });

  // By the operator's command, as by a request.
  const signal = AbortSignal.timeout(60_000);
  const asked = { operator: "root", username: "alice" };
  for await (const _ of callControl(join(dir.path, "control.sock"), "token-revoke", asked, signal));
  expect((await page.next("bye")).data).toEqual({ reason: "revoked" });
  await until("the end", page.isOver);
});

test("a stop of central ends streams at once and is not held up by them", async () => {
  using dir = tempDir();
  const central = await start(settingsOf(dir.path));
  const { token } = await newSite(central.url);
  using page = await listenToEvents(central.url, { authorization: `Token ${token}` });
  await page.next("hello");
  const beganMs = performance.now();
  await central[Symbol.asyncDispose]();
  expect((await page.next("bye")).data).toEqual({ reason: "stopping" });
  expect(performance.now() - beganMs).toBeLessThan(4_000);
});
