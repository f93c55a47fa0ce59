// One central of two that alone has no way to the store: its agents and customers go to the other one, and it takes part again when its way is back.

import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { call, statusOf } from "../support/central-whole.ts";
import { statesOf } from "../support/clear-states.ts";
import { haproxyConfig } from "../support/documented-proxy.ts";
import { freePorts } from "../support/free-ports.ts";
import { startLinkedAgent } from "../support/linked-agent.ts";
import { postgresBin } from "../support/postgres-server.ts";
import { answers200 } from "../support/process.ts";
import { sayingOf, startProxy } from "../support/proxy-program.ts";
import { SeveralCentrals } from "../support/several-centrals.ts";
import { SocketRelay } from "../support/socket-relay.ts";
import { until } from "../support/until.ts";

const bin = postgresBin();
const hasHaproxy = sayingOf("haproxy", "-v") !== undefined;
const domain = "www.lone.example";

describe.skipIf(bin === undefined || !hasHaproxy)("a lone central", { timeout: 300_000 }, () => {
  test("its agents come back at the other one, customers meet the other one, and it is ready again when its way is back", async () => {
    await using stack = new AsyncDisposableStack();
    const [port = 0] = await freePorts(1);
    const front = `http://127.0.0.1:${port}`;
    const several = stack.use(await SeveralCentrals.start(bin ?? "", 1, { base_url: front }));
    const [one] = several.all;
    if (one === undefined) throw new Error("one was started");
    const { host, port: socket } = several.server.place("central");
    const relay = stack.use(
      await SocketRelay.open(join(several.dir, "way"), host, `.s.PGSQL.${socket}`),
    );
    const two = await several.add({ storeAt: relay.directory });
    stack.use(
      await startProxy(
        [port],
        () => haproxyConfig(port, [one, two]),
        (_, path) => ["haproxy", "-db", "-f", path],
      ),
    );
    const trial = await call(one.url, "POST", "/trial/", undefined, { username: "lone" });
    const token = String(trial["token"]);
    const site = await call(one.url, "POST", "/deployment-site/", token, { tags: "all" });
    const body = { name: domain, link_to_deployment_sites_with_tags: "all" };
    await call(one.url, "POST", "/domain/", token, body);
    const named = { name16: String(site["name16"]), secret16: String(site["secret16"]) };
    const agents = [0, 1, 2, 3, 4, 5].map((no) => stack.use(startLinkedAgent(front, named, no)));
    const holders = async (): Promise<readonly number[]> => {
      const rows = await several.run(
        "SELECT count(*)::int AS agents FROM channels GROUP BY central ORDER BY agents",
      );
      return rows.map((row) => Number(Object(row)["agents"]));
    };
    await until("each has three of them", async () => {
      expect(await holders()).toEqual([3, 3]);
      return true;
    });
    const asked = async (query = ""): Promise<readonly [number, string]> => {
      const answer = await fetch(`${two.url}/readyz${query}`);
      return [answer.status, await answer.text()];
    };
    await relay.cut();
    await until("it knows that it is alone", async () => (await asked())[0] === 503);
    const text = "this central alone has no way to the store\n";
    expect([await asked(), await asked("?stopping=404")]).toEqual([
      [503, text],
      [404, text],
    ]);
    await until("all are at the other one", async () => {
      expect(await holders()).toEqual([6]);
      return true;
    });
    const order = { url_path_patterns: ["path:a"] };
    const path = `/clear-accelerator-cache/${domain}/?wait=30`;
    const clear = await call(front, "POST", path, token, order);
    expect(statesOf(clear)).toEqual(agents.map(() => "applied"));
    for (let count = 0; count < 10; count++)
      expect(Object.keys(await call(front, "GET", "/fleet/", token))).toContain("sites");
    expect(agents.map(({ snapshots }) => snapshots())).toEqual(agents.map(() => 1));
    await relay.mend();
    await until("it is ready again", async () => answers200(`${two.url}/readyz?stopping=404`));
    await until("its warnings are over", async () => {
      expect(await statusOf(join(several.dir, "state-1"))).toMatchObject({ warnings: [] });
      return true;
    });
    expect(statesOf(await call(two.url, "POST", path, token, order))).toEqual(
      agents.map(() => "applied"),
    );
  });
});
