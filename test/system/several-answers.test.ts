// Three centrals, the last of which came later: after a customer's life that was spread over the first two, each reading operation of the customer API is answered the same by all of them.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describedDocument } from "../../src/central/api/http/described.ts";
import { connectPostgresStore } from "../../src/central/store/engine/postgres-store.ts";
import { analyticsBy } from "../../src/wire/customer/analytics.ts";
import { member, send } from "../central/api/api-harness.ts";
import { createContract, type Operation } from "../support/api-contract.ts";
import { makeWorld, pathWith, queryWith, type World } from "../support/api-world.ts";
import { connectAgent } from "../support/fake-agent.ts";
import { startLinkedAgent } from "../support/linked-agent.ts";
import { startMailServer } from "../support/mail-server.ts";
import { postgresBin } from "../support/postgres-server.ts";
import { requestRecord } from "../support/request-records.ts";
import { SeveralCentrals, type OneCentral } from "../support/several-centrals.ts";
import { until } from "../support/until.ts";

const bin = postgresBin();
const records = 120;

/** `/events/` is a stream without an end; several-centrals.test.ts hears it at the one and the other. */
const reading = createContract(describedDocument()).operations.filter(
  ({ method, path }) => method === "GET" && path !== "/events/",
);

describe.skipIf(bin === undefined)("what several centrals answer", { timeout: 300_000 }, () => {
  const opened = new AsyncDisposableStack();
  let several: SeveralCentrals;
  let world: World;
  beforeAll(async () => {
    const mails = opened.use(await startMailServer());
    const server = `smtp://127.0.0.1:${mails.port}`;
    const mail = { server, starttls: "never", from: "accel@c.example" };
    several = opened.use(await SeveralCentrals.start(bin ?? "", 2, { mail }));
    world = await live(several.all);
    await several.add();
    await until("all know the agents", async () => {
      const fleets = await Promise.all(several.all.map(async (one) => text(one, "/fleet/")));
      return fleets.every((fleet) => fleet.split('"link":"channel"').length === 3);
    });
  }, 300_000);
  afterAll(async () => opened.disposeAsync(), 120_000);

  /** Calls go to the one and the other in turn, and so do the agents and what they tell. */
  async function live(centrals: readonly OneCentral[]): Promise<World> {
    let no = 0;
    const next = (): OneCentral => {
      const one = centrals[no++ % centrals.length];
      if (one === undefined) throw new Error("two were started");
      return one;
    };
    await using store = connectPostgresStore({
      place: several.server.place("central"),
      random: Math.random,
    });
    const made = await makeWorld(
      {
        call: async (...given) => send(next().port, ...given),
        store,
        clock: new Date(),
        logs: { addDetail: () => undefined },
      },
      "lives",
    );
    const { token, slots } = made;
    const post = async (path: string, body: unknown = {}): Promise<unknown> => {
      const reply = await send(next().port, "POST", path, { token, body });
      if (reply.status >= 300) throw new Error(`${path}: ${JSON.stringify(reply.body)}`);
      return reply.body;
    };
    const path = `/deployment-site/${slots["deployment_site_id"]}/rotate-secret/`;
    const secret16 = member(await post(path, { grace_seconds: 0 }), "secret16");
    const site = { name16: slots["deployment_name"] ?? "", secret16 };
    for (const [at, { url }] of centrals.entries()) {
      opened.use(startLinkedAgent(url, site, at));
      const agent = await connectAgent(`${url}/agent-api/v1`, site.name16, site.secret16);
      for (let first = 1; first < records; first += records / 2) {
        const last = first + records / 2 - 1;
        const shipped = await agent.call("/request-logs", {
          method: "POST",
          headers: {
            "accel-lane": `00000000000000e1/${at + 1}`,
            "accel-first-seq": String(first),
            "accel-last-seq": String(last),
          },
          body: batchOf(first, last, slots["domain"] ?? ""),
        });
        expect(shipped.status).toBe(200);
      }
    }
    await post(`/clear-accelerator-cache/${slots["domain"]}/?wait=30`, {
      url_path_patterns: ["path:css"],
    });
    return made;
  }

  async function text({ url }: OneCentral, path: string): Promise<string> {
    const headers = { authorization: `Token ${world.token}` };
    const answer = await fetch(`${url}/presentation-api/v1${path}`, { headers });
    const link = answer.headers.get("link")?.replaceAll(url, "");
    // That a token was used is noted at most once a minute, and by the next call, too.
    const body = (await answer.text()).replaceAll(/"when_last_used":(?:null|"[^"]*")/g, "");
    return `${answer.status} ${answer.headers.get("content-type")} ${link} ${body.replaceAll(url, "")}`;
  }

  const queriesOf = ({ path }: Operation): readonly Readonly<Record<string, string>>[] => {
    const { domain = "", deployment_id = "" } = world.slots;
    if (path === "/incominglogs/")
      return [
        { domain, deployment_id },
        { domain, deployment_id, limit: "7" },
      ];
    if (path === "/requests/{domain}/") return [{}, { limit: "7" }, { path: "/articles/3*" }];
    if (path !== "/analytics/{domain}/") return [{}];
    const [since, until] = [String(Date.now() / 1_000 - 7_200), String(Date.now() / 1_000)];
    return [
      {},
      ...analyticsBy.flatMap((by) =>
        ["hour", "day"].map((step) => ({ by, step, ...(step === "hour" && { since, until }) })),
      ),
    ];
  };

  test("there are all that a customer can read", () => {
    expect(reading.length).toBeGreaterThan(50);
  });

  test.each(reading.map((one) => [one.path, one] as const))("GET %s", async (_, operation) => {
    for (const query of queriesOf(operation)) {
      const path = pathWith(operation, world.slots) + queryWith(operation, world.slots, query);
      // What is still being counted, or told, is the same in a moment.
      const answers = await until(
        `one answer to ${path}`,
        async () => {
          const told = await Promise.all(several.all.map(async (one) => text(one, path)));
          last = told;
          return new Set(told).size === 1 && told;
        },
        20_000,
      ).catch(() => last);
      expect(new Set(answers)).toEqual(new Set(answers.slice(0, 1)));
    }
  });
  let last: readonly string[] = [];

  test("numbers of requests are those of all records, at each", async () => {
    const path = `/analytics/${world.slots["domain"]}/?step=hour`;
    for (const one of several.all)
      expect(await text(one, path)).toContain(`"totals":{"requests":${2 * records},`);
  });
});

function batchOf(first: number, last: number, domain: string): string {
  const when = Math.floor(Date.now() / 1_000) - 60;
  return Array.from({ length: last - first + 1 }, (_, at) => {
    const record = requestRecord(first + at, { when, authority: domain, domain });
    return `${JSON.stringify(record)}\n`;
  }).join("");
}
