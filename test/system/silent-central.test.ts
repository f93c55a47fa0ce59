// One central of two whose way to the store goes silent in the middle of a clear, while each end keeps its connections: the other one waits a few seconds for its locks, and its own
// metrics are answered and say so. Its way comes back, and it takes part again; nothing of its clear is there.

import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { call, statusOf } from "../support/central-whole.ts";
import { postgresBin } from "../support/postgres-server.ts";
import { answers200 } from "../support/process.ts";
import { SeveralCentrals } from "../support/several-centrals.ts";
import { SocketRelay } from "../support/socket-relay.ts";
import { until } from "../support/until.ts";

const bin = postgresBin();
const domain = "www.silent.example";

describe.skipIf(bin === undefined)("a silent central", { timeout: 180_000 }, () => {
  test("what it has locked holds the other up for seconds, its metrics tell, and it comes back whole", async () => {
    await using stack = new AsyncDisposableStack();
    const several = stack.use(await SeveralCentrals.start(bin ?? "", 1));
    const [one] = several.all;
    if (one === undefined) throw new Error("one was started");
    const { host, port: socket } = several.server.place("central");
    const relay = stack.use(
      await SocketRelay.open(join(several.dir, "way"), host, `.s.PGSQL.${socket}`),
    );
    const two = await several.add({ storeAt: relay.directory });
    stack.defer(() => relay.speak());
    const trial = await call(one.url, "POST", "/trial/", undefined, { username: "silent" });
    const token = String(trial["token"]);
    await call(one.url, "POST", "/deployment-site/", token, { tags: "all" });
    const body = { name: domain, link_to_deployment_sites_with_tags: "all" };
    await call(one.url, "POST", "/domain/", token, body);
    const clears = async (): Promise<unknown> =>
      several.run("SELECT patterns FROM clears ORDER BY no");
    const clearAt = async (url: string, path: string): Promise<Response> =>
      fetch(`${url}/presentation-api/v1/clear-accelerator-cache/${domain}/`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Token ${token}` },
        body: JSON.stringify({ url_path_patterns: [`path:${path}`] }),
      });
    const metrics = async (): Promise<string> => (await fetch(`${two.url}/metrics`)).text();

    // Its transaction holds the rows of the sites by then.
    const silent = relay.silenceAt('INSERT INTO "clear_deployments"');
    const cut = clearAt(two.url, "cut");
    await silent;
    const silentSinceMs = performance.now();
    expect((await clearAt(one.url, "other")).ok).toBe(true);
    // On a host that does nothing else 8 s at most; PostgreSQL itself ends it after 60 s.
    expect(performance.now() - silentSinceMs).toBeLessThan(15_000);

    const unreachable = 'accel_central_warning{code="store_unreachable",severity="error"} 1';
    await until("its metrics tell", async () => {
      const beganMs = performance.now();
      const text = await metrics();
      // It waits for 1.5 s.
      expect(performance.now() - beganMs).toBeLessThan(5_000);
      expect(text).toContain('accel_central_scrape_missing{of="store"} 1');
      return text.includes(unreachable);
    });
    expect(performance.now() - silentSinceMs).toBeLessThan(30_000);

    // What its own clear waits for ends with the connection that holds the store, and not behind a statement's minute.
    expect((await cut).status).toBe(503);
    expect(performance.now() - silentSinceMs).toBeLessThan(45_000);
    relay.speak();
    await until("it is well again", async () => {
      expect(await statusOf(join(several.dir, "state-1"))).toMatchObject({ warnings: [] });
      return answers200(`${two.url}/readyz?stopping=404`);
    });
    expect(await metrics()).toContain('accel_central_scrape_missing{of="store"} 0');
    expect((await clearAt(two.url, "again")).ok).toBe(true);
    expect(await clears()).toEqual([
      { patterns: '["path:other"]' },
      { patterns: '["path:again"]' },
    ]);
  });

  test("one that is stopped meanwhile ends in its time, whatever it waits for", async () => {
    await using stack = new AsyncDisposableStack();
    const several = stack.use(await SeveralCentrals.start(bin ?? "", 1));
    const [one] = several.all;
    if (one === undefined) throw new Error("one was started");
    const { host, port: socket } = several.server.place("central");
    const relay = stack.use(
      await SocketRelay.open(join(several.dir, "way"), host, `.s.PGSQL.${socket}`),
    );
    const two = await several.add({ storeAt: relay.directory });
    const silent = relay.silenceAt('insert into "customers"');
    const trial = call(two.url, "POST", "/trial/", undefined, { username: "silent" });
    const refused = expect(trial).rejects.toThrow("503");
    await silent;
    const stoppedMs = performance.now();
    expect(await two.program.terminate()).toBe(0);
    // The unit has `TimeoutStopSec=30`, and a store that is silent is waited for 70 s.
    expect(performance.now() - stoppedMs).toBeLessThan(30_000);
    expect(two.program.said).toMatch(
      /"waited_ms":20000,"msg":"the stop still waited for PostgreSQL/,
    );
    await refused;
  });
});
