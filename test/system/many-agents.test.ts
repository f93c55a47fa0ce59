// 200 light agents on two centrals behind haproxy: an order is receipted by all whichever is asked, also when a central is killed, and one that is killed in the middle of an
// order has given it to nobody.

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fillWithFleet, fleetDomain } from "../../bench/support/fleet-seed.ts";
import { LightFleet } from "../../bench/support/light-fleet.ts";
import { createSealer, openKeyFile } from "../../src/base/seal.ts";
import { connectPostgresStore } from "../../src/central/store/engine/postgres-store.ts";
import { haproxyConfig } from "../support/documented-proxy.ts";
import { freePorts } from "../support/free-ports.ts";
import { postgresBin } from "../support/postgres-server.ts";
import { sayingOf, startProxy } from "../support/proxy-program.ts";
import { SeveralCentrals, type OneCentral } from "../support/several-centrals.ts";
import { until } from "../support/until.ts";

const bin = postgresBin();
const isThere = bin !== undefined && sayingOf("haproxy", "-v") !== undefined;
const agents = 200;
const path = `/presentation-api/v1/clear-accelerator-cache/${fleetDomain}/`;

describe.skipIf(!isThere)("many agents on two centrals", { timeout: 300_000 }, () => {
  const opened = new AsyncDisposableStack();
  let several: SeveralCentrals;
  let one: OneCentral;
  let two: OneCentral;
  let front = "";
  let token = "";
  let fleet: LightFleet;
  const areAll = async (): Promise<boolean> => fleet.connected === agents;

  beforeAll(async () => {
    several = opened.use(await SeveralCentrals.start(bin ?? "", 2));
    const [first, second] = several.all;
    if (first === undefined || second === undefined) throw new Error("two were started");
    [one, two] = [first, second];
    const sealer = createSealer(await openKeyFile(join(several.dir, "central.key")));
    const place = several.server.place("central");
    await using store = connectPostgresStore({ place, random: Math.random });
    const seeded = await fillWithFleet(store, sealer, { customers: 1, domains: 1, sites: agents });
    ({ token } = seeded);
    const [port = 0] = await freePorts(1);
    opened.use(
      await startProxy(
        [port],
        () => haproxyConfig(port, several.all),
        (_, file) => ["haproxy", "-db", "-f", file],
      ),
    );
    front = `http://127.0.0.1:${port}`;
    fleet = opened.use(new LightFleet([front], seeded.sites, 1));
    await until("all are connected", areAll, 60_000);
  }, 300_000);
  afterAll(async () => opened.disposeAsync(), 120_000);

  async function order(url: string, wait: number, key = crypto.randomUUID()): Promise<string> {
    const answer = await fetch(`${url}${path}?wait=${wait}`, {
      method: "POST",
      headers: {
        authorization: `Token ${token}`,
        "content-type": "application/json",
        "idempotency-key": key,
      },
      body: JSON.stringify({ url_path_patterns: ["path:a"] }),
    });
    expect(answer.status).toBe(200);
    return String(Object(await answer.json())["clear_id"]);
  }

  /** What is proved of a clear at each site, but for when agents were seen last, which goes on. */
  async function proofOf(url: string, id: string): Promise<readonly unknown[]> {
    const authorization = `Token ${token}`;
    const answer = await fetch(`${url}${path}${id}/`, { headers: { authorization } });
    const { deployments } = Object(await answer.json());
    return Array.of<{ instances: { last_seen: string }[] }>()
      .concat(deployments)
      .map(({ instances, ...site }) => ({
        ...site,
        instances: instances.map(({ last_seen: _seen, ...instance }) => instance),
      }));
  }

  const isProved = (proof: readonly unknown[]): boolean =>
    proof.length === agents && proof.every((site) => Object(site).state === "applied");

  test("both hold agents, and a clear that is given to one is proved by all, by the word of either", async () => {
    const held = await several.run("SELECT count(*) FROM channels GROUP BY central");
    expect(held).toHaveLength(2);
    for (const { url } of [one, two]) {
      const id = await order(url, 30);
      // Whoever gave it has waited for that.
      const proof = await proofOf(url, id);
      expect(isProved(proof)).toBe(true);
      expect(await proofOf(one.url, id)).toEqual(await proofOf(two.url, id));
    }
  });

  test("one is killed: all are back at the other one, and a clear in between is proved by all, by the word of either", async () => {
    const snapshots = fleet.snapshots;
    await one.program.kill();
    const id = await order(front, 0);
    await until("all are back", areAll, 60_000);
    await until("all have proved it", async () => isProved(await proofOf(two.url, id)), 60_000);
    await one.program.restart();
    expect(await proofOf(one.url, id)).toEqual(await proofOf(two.url, id));
    expect(fleet.snapshots).toBe(snapshots);
  });

  test("one is killed in the middle of an order: it is given to nobody, and once when the call is repeated at the other one", async () => {
    const entries = async (): Promise<unknown> => several.run("SELECT count(*) FROM journal");
    const clears = async (): Promise<number> => (await several.run("SELECT id FROM clears")).length;
    const [before, given] = [await entries(), await clears()];
    const locker = several.server.client("central");
    await locker.connect();
    // The journals are written by then, and the order is not.
    await locker.query("BEGIN");
    await locker.query("LOCK TABLE clear_deployments IN SHARE MODE");
    const key = crypto.randomUUID();
    const cut = order(one.url, 0, key).catch((error: unknown) => error);
    await until("it is in the middle", async () => {
      const waiting = await several.run(
        "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%clear_deployments%'",
      );
      return waiting.length === 1;
    });
    await one.program.kill();
    expect(await cut).toBeInstanceOf(Error);
    await locker.query("COMMIT");
    await locker.end();
    expect(await entries()).toEqual(before);
    const id = await order(two.url, 30, key);
    await until("all have proved it", async () => isProved(await proofOf(two.url, id)), 60_000);
    expect(await clears()).toBe(given + 1);
    expect(await order(two.url, 0, key)).toBe(id);
    await one.program.restart();
    expect(await proofOf(one.url, id)).toEqual(await proofOf(two.url, id));
  });
});
