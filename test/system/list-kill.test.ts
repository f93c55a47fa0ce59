// kill -9 of central while lists come in, from a customer and from a URL (ACCEL_KILLS: another number of kills): a bot holds the list of before or the new one, never a part, and
// in the end every agent judges by what was asked for.

import { expect, test } from "vitest";
import { CustomerScript, domain } from "../support/customer-script.ts";
import { Edge } from "../support/edge.ts";
import { startOrigin } from "../support/origin.ts";
import { startTextServer } from "../support/text-server.ts";
import { until } from "../support/until.ts";

const kills = Number(process.env["ACCEL_KILLS"] ?? 4);
const length = 30_000;
const list = (no: number): string =>
  Array.from({ length }, (_, n) => `10.${no}.${n >> 8}.${n & 255}`).join("\n");

type Held = {
  readonly count: number;
  readonly first: string | undefined;
  readonly last: string | undefined;
};

test(`a list is whole or not there, over ${kills} kills of central`, async () => {
  await using origin = await startOrigin();
  await using edge = await Edge.prepare();
  edge.changeCentralSettings({
    bots: { private_sources: true },
    limits: { marks_burst: 1_000_000 },
  });
  await edge.startCentral();
  const script = new CustomerScript(edge, origin.url, "lists");
  await script.enrol();
  await edge.startAgent();
  for (const { run } of script.steps().slice(0, 2)) await run();

  let published = 0;
  await using server = await startTextServer(() => list(published));
  const { url } = server;
  const of = (bot: string, part: string): string => `/bots/bad/${bot}/${part}/?domain=${domain}`;
  await edge.api.put(of("Fetched", "source"), { url, interval_s: 900 });

  const held = async (bot: string): Promise<Held | undefined> => {
    const { status, body } = await edge.api.get(`${of(bot, "addresses")}&limit=10000`);
    if (status === 404) return undefined;
    const { count, ip_addresses: shown } = body as { count: number; ip_addresses: string[] };
    return { count, first: shown[0], last: shown.at(-1) };
  };
  const put = async (no: number): Promise<number> => {
    const { origin: at, token } = edge.api;
    try {
      const response = await fetch(`${at}/presentation-api/v1${of("Sent", "addresses")}`, {
        method: "PUT",
        headers: { authorization: `Token ${token}`, "content-type": "text/plain" },
        body: list(no),
      });
      await response.text();
      return response.status;
    } catch {
      return 0; // Central was killed.
    }
  };
  const isWhole = (found: Held | undefined, most: number): boolean => {
    if (found === undefined) return true;
    const no = Number(found.first?.split(".")[1]);
    return found.count === length && no <= most && found.last?.startsWith(`10.${no}.`) === true;
  };

  for (let no = 1; no <= kills; no++) {
    published = no;
    await edge.api.post(of("Fetched", "source/fetch"), {});
    const sending = put(no);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 1_500));
    await edge.central.kill();
    const status = await sending;
    await edge.central.restart();
    const [sent, fetched] = [await held("Sent"), await held("Fetched")];
    expect({ no, status, sent, whole: isWhole(sent, no) }).toMatchObject({ whole: true });
    expect({ no, fetched, whole: isWhole(fetched, no) }).toMatchObject({ whole: true });
    if (status === 200) expect(sent?.first).toBe(`10.${no}.0.0`);
  }

  // In peace both arrive, and the agent judges by them.
  const answered = await until("the list is taken in", async () => (await put(200)) === 200);
  expect(answered).toBe(true);
  await until("the list of the URL is fetched", async () => {
    const found = await held("Fetched");
    return found?.first === `10.${kills}.0.0`;
  });
  await until("the agent judges by both", async () => {
    const { body } = await edge.api.post(`${of("Sent", "addresses")}&wait=10`, {
      remove: ["203.0.113.1"],
    });
    const { deployments } = body as { deployments: { state: string }[] };
    return deployments.length > 0 && deployments.every(({ state }) => state === "applied");
  });
  for (const [address, status] of [
    ["10.200.0.0", 403],
    [`10.${kills}.117.47`, 403],
    ["10.99.0.0", 200],
  ] as const) {
    const visit = await edge.visit("/page/lists", {
      host: domain,
      headers: { "x-forwarded-for": address },
    });
    expect([address, visit.status]).toEqual([address, status]);
  }
}, 600_000);
