// Several centrals behind haproxy, with agents by the real link: every answer is the same whichever is asked, and one that is killed takes nothing with it.

import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, statusOf } from "../support/central-whole.ts";
import { statesOf } from "../support/clear-states.ts";
import { listenToEvents } from "../support/event-listener.ts";
import { freePorts } from "../support/free-ports.ts";
import { startLinkedAgent } from "../support/linked-agent.ts";
import { startMailServer, type MailServer } from "../support/mail-server.ts";
import { answers200 } from "../support/process.ts";
import { postgresBin } from "../support/postgres-server.ts";
import { haproxyConfig } from "../support/documented-proxy.ts";
import { sayingOf, startProxy } from "../support/proxy-program.ts";
import { SeveralCentrals, type OneCentral } from "../support/several-centrals.ts";
import { until } from "../support/until.ts";

const bin = postgresBin();
const hasHaproxy = sayingOf("haproxy", "-v") !== undefined;
const domain = "www.several.example";

/** A customer of its own, with a domain at one site. */
async function makeDomain({ url }: OneCentral, username: string) {
  const token = String((await call(url, "POST", "/trial/", undefined, { username }))["token"]);
  const site = await call(url, "POST", "/deployment-site/", token, { tags: "all" });
  const body = { name: domain, link_to_deployment_sites_with_tags: "all" };
  await call(url, "POST", "/domain/", token, body);
  const [name16, secret16] = [String(site["name16"]), String(site["secret16"])];
  return { token, id: Number(site["id"]), name16, secret16 };
}

type Site = Awaited<ReturnType<typeof makeDomain>>;

async function isConnected({ url }: OneCentral, { token }: Site): Promise<boolean> {
  const { sites } = await call(url, "GET", "/fleet/", token);
  return JSON.stringify(sites).includes('"link":"channel"');
}

const clearOf = async (
  { url }: OneCentral,
  { token }: Site,
  { wait = 30, isDry = false }: { readonly wait?: number; readonly isDry?: boolean } = {},
) =>
  call(url, "POST", `/clear-accelerator-cache/${domain}/?wait=${wait}`, token, {
    url_path_patterns: ["path:a"],
    ...(isDry && { dry_run: true }),
  });

/** HAProxy closes the connection of a request whose central died under it. Who asked asks once more. */
async function askedAgain<T>(ask: () => Promise<T>): Promise<T> {
  return ask().catch(async (error: unknown) => {
    const { code } = Object(Object(error).cause) as { readonly code?: unknown };
    if (code !== "UND_ERR_SOCKET" && code !== "ECONNRESET") throw error;
    return ask();
  });
}

describe.skipIf(bin === undefined)("several centrals", { timeout: 300_000 }, () => {
  const opened = new AsyncDisposableStack();
  let mails: MailServer;
  let several: SeveralCentrals;
  let one: OneCentral;
  let two: OneCentral;
  beforeAll(async () => {
    mails = opened.use(await startMailServer());
    const server = `smtp://127.0.0.1:${mails.port}`;
    const mail = { server, starttls: "never", from: "accel@c.example" };
    // Each central has its share of what an address may do, and one that was killed counts for some seconds more.
    const limits = { recoveries_per_address: 1_000 };
    several = opened.use(await SeveralCentrals.start(bin ?? "", 2, { mail, limits }));
    const [first, second] = several.all;
    if (first === undefined || second === undefined) throw new Error("two were started");
    [one, two] = [first, second];
  }, 300_000);
  afterAll(async () => opened.disposeAsync(), 120_000);

  test("clears, dry runs, hosts, events: the one that has no channel answers as the one that has it", async () => {
    await using stack = new AsyncDisposableStack();
    const site = await makeDomain(one, "asks");
    stack.use(startLinkedAgent(two.url, site));
    await until(
      "both know the agent",
      async () => (await isConnected(one, site)) && (await isConnected(two, site)),
    );
    const authorization = `Token ${site.token}`;
    using events = await listenToEvents(one.url, { authorization });
    await events.next("hello");
    for (const [at, central] of [one, two].entries()) {
      const clear = await clearOf(central, site);
      expect([at, statesOf(clear)]).toEqual([at, ["applied"]]);
      const path = `/clear-accelerator-cache/${domain}/${String(clear["clear_id"])}/`;
      const [here, there] = [
        await call(one.url, "GET", path, site.token),
        await call(two.url, "GET", path, site.token),
      ];
      expect(here).toEqual(there);
      expect(statesOf(here)).toEqual(["applied"]);
    }
    const [dry, dryToo] = [
      await clearOf(one, site, { isDry: true, wait: 20 }),
      await clearOf(two, site, { isDry: true, wait: 20 }),
    ];
    expect(dry).toEqual(dryToo);
    expect(statesOf(dry)).toEqual(["answered"]);
    const before = events.heard.length;
    await call(two.url, "POST", "/deployment-site/", site.token, { tags: "" });
    const told = await until("the change is told", () =>
      events.heard.slice(before).find(({ data }) => JSON.stringify(data).includes('"sites"')),
    );
    expect(told.name).toBe("changed");
    // Seconds of an age may pass between the two.
    await until("both say the same", async () => {
      const fleets = [
        await call(one.url, "GET", "/fleet/", site.token),
        await call(two.url, "GET", "/fleet/", site.token),
      ];
      return isDeepStrictEqual(fleets[0], fleets[1]);
    });
  });

  test("a secret that is rotated, and a site that is deleted, at the one end the channel at the other", async () => {
    await using stack = new AsyncDisposableStack();
    const site = await makeDomain(one, "revokes");
    const other = await call(one.url, "POST", "/deployment-site/", site.token, { tags: "b" });
    const rotated = { name16: String(other["name16"]), secret16: String(other["secret16"]) };
    const agent = stack.use(startLinkedAgent(two.url, site));
    stack.use(startLinkedAgent(two.url, rotated));
    const count = async (): Promise<number> =>
      Number(
        Object(
          await until("both agree", async () => {
            const fleets = await Promise.all(
              [one, two].map(async ({ url }) => call(url, "GET", "/fleet/", site.token)),
            );
            const links = fleets.map(
              (fleet) => JSON.stringify(fleet).split('"channel"').length - 1,
            );
            return links[0] === links[1] ? { links: links[0] } : undefined;
          }),
        )["links"],
      );
    await until("both agents are connected", async () => (await count()) === 2);
    const path = `/deployment-site/${String(other["id"])}/rotate-secret/`;
    await call(one.url, "POST", path, site.token, { grace_seconds: 0 });
    await until("the one with the old secret is gone", async () => (await count()) === 1);
    const authorization = `Token ${site.token}`;
    const deleted = await fetch(`${one.url}/presentation-api/v1/deployment-site/${site.id}/`, {
      method: "DELETE",
      headers: { authorization },
    });
    expect(deleted.status).toBe(204);
    await until("the agent knows", () => agent.isDeleted());
    expect(await count()).toBe(0);
  });

  test("what a central committed and died before it said is found by the others", async () => {
    await using stack = new AsyncDisposableStack();
    const site = await makeDomain(one, "commits");
    const agent = stack.use(startLinkedAgent(one.url, site));
    await until("it is connected", async () => isConnected(one, site));
    // Whatever this one says goes nowhere: its commits are told by nobody.
    await several.run(
      "CREATE ROLE mute LOGIN SUPERUSER",
      "CREATE SCHEMA muted",
      "CREATE FUNCTION muted.pg_notify(text, text) RETURNS void LANGUAGE sql AS 'SELECT NULL'",
      "ALTER ROLE mute SET search_path = muted, pg_catalog, public",
    );
    const mute = await several.add({ user: "mute" });
    const before = agent.applied.length;
    const clear = await clearOf(mute, site, { wait: 0 });
    await mute.program.kill();
    await until("the agent has the clear", () => agent.applied.length > before);
    const path = `/clear-accelerator-cache/${domain}/${String(clear["clear_id"])}/`;
    const states = await until("its proof is there", async () => {
      const told = statesOf(await call(one.url, "GET", path, site.token));
      return told.includes("applied") ? told : undefined;
    });
    expect(states).toEqual(["applied"]);
  });

  test("one that stops waits on for a proof that another hears of", async () => {
    await using stack = new AsyncDisposableStack();
    const site = await makeDomain(one, "stops");
    const held = Promise.withResolvers<void>();
    const agent = stack.use(startLinkedAgent(two.url, site, 7, held.promise));
    await until("it is connected", async () => isConnected(one, site));
    const before = agent.applied.length;
    const clear = clearOf(one, site);
    await until("the agent has the clear", () => agent.applied.length > before);
    const stopping = one.program.terminate();
    await until("it stops", async () => !(await answers200(`${one.url}/readyz`)));
    held.resolve();
    expect(statesOf(await clear)).toEqual(["applied"]);
    await stopping;
    await one.program.restart();
  });

  test("one that stops listens on for an order that the store holds up, and tells it to come again when its time is over; the order is taken once", async () => {
    const { token } = await makeDomain(one, "held");
    const locker = several.server.client("central");
    await locker.connect();
    await locker.query("BEGIN");
    await locker.query("LOCK TABLE deployment_sites IN EXCLUSIVE MODE");
    const key = crypto.randomUUID();
    const order = async ({ url }: OneCentral): Promise<Response> =>
      fetch(`${url}/presentation-api/v1/deployment-site/`, {
        method: "POST",
        headers: {
          authorization: `Token ${token}`,
          "content-type": "application/json",
          "idempotency-key": key,
        },
        body: JSON.stringify({ tags: "held" }),
      });
    const held = order(one);
    await until("the store holds it up", async () => {
      const waiting = await several.run(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%deployment_sites%'",
      );
      return waiting.length > 0;
    });
    const stopping = one.program.terminate();
    await until("it stops", async () => !(await answers200(`${one.url}/readyz`)));
    const looked = new Set<number>();
    let isAnswered = false;
    void held.finally(() => (isAnswered = true)).catch(() => undefined);
    await until("it is answered", async () => {
      if (isAnswered) return true;
      looked.add((await fetch(`${one.url}/readyz?stopping=404`)).status);
      return false;
    });
    const answer = await held;
    expect([answer.status, answer.headers.get("retry-after"), [...looked]]).toEqual([
      503,
      "5",
      [404],
    ]);
    expect(await answer.json()).toMatchObject({
      status: 503,
      detail: expect.stringMatching(/; try again, with the same Idempotency-Key$/),
    });
    await locker.query("COMMIT");
    await locker.end();
    expect(await stopping).toBe(0);
    const again = await order(two);
    expect(again.status).toBe(201);
    const { sites } = await call(two.url, "GET", "/fleet/", token);
    expect(JSON.stringify(sites).split('"name16"')).toHaveLength(3);
    await one.program.restart();
  });

  test.skipIf(!hasHaproxy)(
    "behind haproxy as documented: one that is killed loses no agent, no order and no proof",
    async () => {
      await using stack = new AsyncDisposableStack();
      const [port = 0] = await freePorts(1);
      stack.use(
        await startProxy(
          [port],
          () => haproxyConfig(port, [one, two]),
          (_, path) => ["haproxy", "-db", "-f", path],
        ),
      );
      const front: OneCentral = { ...one, url: `http://127.0.0.1:${port}`, port };
      const site = await makeDomain(front, "balances");
      const agents = [0, 1, 2, 3].map((no) => stack.use(startLinkedAgent(front.url, site, no)));
      const connected = async (central: OneCentral): Promise<number> =>
        JSON.stringify(await call(central.url, "GET", "/fleet/", site.token)).split('"channel"')
          .length - 1;
      await until("all are connected", async () => (await connected(two)) === agents.length);
      const status = JSON.stringify(await statusOf(join(several.dir, "state-0")));
      expect(status).toContain(`(127.0.0.1:${two.port})`);
      const rows = await several.run(
        `SELECT DISTINCT central FROM channels WHERE deployment_site_id = ${site.id}`,
      );
      expect(rows).toHaveLength(2);
      expect(statesOf(await clearOf(front, site))).toEqual(agents.map(() => "applied"));
      await one.program.kill();
      const clear = await askedAgain(async () => clearOf(front, site));
      const path = `/clear-accelerator-cache/${domain}/${String(clear["clear_id"])}/`;
      await until("all have proved it", async () =>
        statesOf(await call(front.url, "GET", path, site.token)).every(
          (state) => state === "applied",
        ),
      );
      await one.program.restart();
      const proofs = await Promise.all(
        [one, two].map(async ({ url }) => call(url, "GET", path, site.token)),
      );
      expect(proofs[0]).toEqual(proofs[1]);
      expect(statesOf(proofs[0] ?? {})).toEqual(agents.map(() => "applied"));
      await until(
        "the dead one is forgotten",
        async () => (await connected(two)) === agents.length,
      );
      expect(agents.map(({ snapshots }) => snapshots())).toEqual(agents.map(() => 1));
    },
  );

  test.skipIf(!hasHaproxy)(
    "three that are brought to another release one after the other, under orders: each is taken and proved by all, and nobody takes a snapshot",
    async () => {
      await using stack = new AsyncDisposableStack();
      const [port = 0] = await freePorts(1);
      const three = [one, two, await several.add()];
      // Says who has answered.
      const told = `${haproxyConfig(port, three)}  http-response set-header x-central %s\n`;
      stack.use(
        await startProxy(
          [port],
          () => told,
          (_, path) => ["haproxy", "-db", "-f", path],
        ),
      );
      const front: OneCentral = { ...one, url: `http://127.0.0.1:${port}`, port };
      const site = await makeDomain(front, "rolled");
      const agents = [0, 1, 2, 3].map((no) => stack.use(startLinkedAgent(front.url, site, no)));
      const isThere = async ({ snapshots }: (typeof agents)[number]): Promise<boolean> =>
        snapshots() === 1;
      for (const agent of agents) await until("it is connected", async () => isThere(agent));
      const answers: Promise<{ readonly status: number; readonly id: string }>[] = [];
      const ordering = setInterval(() => answers.push(orderAt(front, site)), 500);
      try {
        for (const [no, { program }] of three.entries()) {
          await program.terminate();
          await program.restart();
          await until("it answers again", async () => {
            const { headers } = await fetch(`${front.url}/`);
            return headers.get("x-central") === `central-${no}`;
          });
        }
      } finally {
        clearInterval(ordering);
      }
      const orders = await Promise.all(answers);
      expect(orders.length).toBeGreaterThan(0);
      expect(orders.filter(({ status }) => status < 200 || status >= 300)).toEqual([]);
      for (const { id } of orders)
        await until("all have proved it", async () => {
          const path = `/clear-accelerator-cache/${domain}/${id}/`;
          const states = statesOf(await call(front.url, "GET", path, site.token));
          return states.length === agents.length && states.every((state) => state === "applied");
        });
      expect(agents.map(({ snapshots }) => snapshots())).toEqual(agents.map(() => 1));
    },
  );

  test("mails go out once, and go on when the central that sends them is killed", async () => {
    const name = (no: number): string => `user${no}`;
    for (let no = 0; no < 8; no++)
      await call(no % 2 ? one.url : two.url, "POST", "/trial/", undefined, {
        username: name(no),
        email: `${name(no)}@x.example`,
      });
    const recover = async ({ url }: OneCentral, no: number): Promise<unknown> =>
      call(url, "POST", "/tokens/start-recovery/", undefined, {
        username: name(no),
        email: `${name(no)}@x.example`,
      });
    for (let no = 0; no < 5; no++) await recover(no % 2 ? one : two, no);
    await mails.waitFor(5);
    const [row] = await several.run(
      "SELECT centrals.address FROM central_jobs JOIN centrals ON central = id WHERE job = 'outbox'",
    );
    const sends = JSON.stringify(row).includes(`:${one.port})`) ? one : two;
    const left = sends === one ? two : one;
    await sends.program.kill();
    for (let no = 5; no < 8; no++) await recover(left, no);
    await mails.waitFor(8);
    const to = mails.received.flatMap((one) => one.to);
    expect(to.toSorted()).toEqual(Array.from({ length: 8 }, (_, no) => `${name(no)}@x.example`));
  });
});

async function orderAt(
  { url }: OneCentral,
  { token }: Site,
): Promise<{ readonly status: number; readonly id: string }> {
  const path = `/presentation-api/v1/clear-accelerator-cache/${domain}/`;
  const answer = await fetch(`${url}${path}`, {
    method: "POST",
    headers: { authorization: `Token ${token}`, "content-type": "application/json" },
    body: JSON.stringify({ url_path_patterns: ["path:a"] }),
  });
  const said: unknown = await answer.json();
  return { status: answer.status, id: String(Object(said)["clear_id"]) };
}

/** The block of the documents, with the addresses of the test. */
