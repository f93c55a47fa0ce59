// The active checks on real sockets: an origin that fails is asked last and told about, one that recovers is asked as before.

import { describe, expect, it } from "vitest";
import { followOriginChecks } from "../../../../src/agent/accelerator/origin/down-origins.ts";
import { OriginChecks } from "../../../../src/agent/accelerator/origin/origin-checks.ts";
import { piecesOf } from "../../../../src/agent/accelerator/origin/origin-body.ts";
import {
  OriginPools,
  type OriginOutcome,
} from "../../../../src/agent/accelerator/origin/origin-pools.ts";
import { Health } from "../../../../src/base/health.ts";
import { silentLog } from "../../../../src/base/log.ts";
import { Registry } from "../../../../src/base/metrics.ts";
import type { BackendSettings, SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { until } from "../../../support/until.ts";
import { host, openOrigin, stateOf } from "../edge.ts";
import { createClock } from "../../../../src/agent/accelerator/clock.ts";

const health = { path: "/up", interval_s: 1, timeout_s: 30, statuses: [200] };
const guard = { ownListeners: [] };

function open() {
  const stack = new AsyncDisposableStack();
  const registry = new Registry();
  const warnings = new Health(() => new Date(0));
  const checks = stack.use(
    new OriginChecks({ guard, random: () => 0, registry, health: warnings, log: silentLog() }),
  );
  const origins = stack.use(new OriginPools(createClock(), () => 0, guard));
  const port = checks.openWorker();
  stack.defer(() => port.close());
  followOriginChecks(origins, port);
  let version = 0;
  let backend: BackendSettings | null = null;
  return {
    follow: (site: SiteInput | null): void => {
      const state = stateOf(++version, site);
      backend = state.domains[0]?.hosts[0]?.site?.backend ?? null;
      checks.follow(state);
    },
    /** Which origin a request goes to. */
    asked: async (): Promise<string> => {
      if (backend === null) throw new Error("no backend");
      const stop = AbortSignal.timeout(60_000);
      const request = { method: "GET", path: "/", fields: [["Host", host]] as const, stop };
      const { promise, resolve } = Promise.withResolvers<OriginOutcome>();
      origins.ask(host, backend, { ...request, body: undefined }, resolve);
      const outcome = await promise;
      if (!outcome.ok) return outcome.failure.kind;
      let text = "";
      for await (const chunk of piecesOf(outcome.answer.body)) text += String(chunk);
      return text;
    },
    codes: (): readonly string[] => warnings.list().map(({ code, text }) => `${code}: ${text}`),
    verdicts: (): readonly (readonly [string, string])[] => [...checks.verdicts()],
    metrics: async () => registry.metrics(),
    [Symbol.asyncDispose]: async () => stack.disposeAsync(),
  };
}

describe("an origin that fails its check", () => {
  it("is asked last, told about, and asked first again when it recovers", async () => {
    let status = 500;
    const hosts = new Set<string | undefined>();
    await using first = await openOrigin((request, response) => {
      if (request.url === "/up") hosts.add(request.headers.host);
      response.writeHead(request.url === "/up" ? status : 200).end("first");
    });
    await using second = await openOrigin((_q, r) => void r.end("second"));
    await using rig = open();
    rig.follow({ backend: { urls: [first.url, second.url], health } });
    expect(await rig.asked()).toBe("first");
    await until("it is down", async () => (await rig.asked()) === "second");
    expect([...hosts]).toEqual([host]);
    expect(rig.codes()).toEqual([
      `origin_down: The origin ${first.url} of ${host} fails its check of /up: it answered 500`,
    ]);
    expect(await rig.metrics()).toContain(`accel_agent_origins_down{domain="${host}"} 1`);
    expect(rig.verdicts()).toEqual([[host, "up"]]); // The other one is good.
    status = 200;
    await until("it is up", async () => (await rig.asked()) === "first");
    expect(rig.codes()).toEqual([]);
    expect(await rig.metrics()).toContain(`accel_agent_origins_down{domain="${host}"} 0`);
  });

  it("is asked nevertheless when all do", async () => {
    await using only = await openOrigin((request, response) => {
      if (request.url !== "/up") response.end("well"); // The check gets no answer.
    });
    await using rig = open();
    rig.follow({ backend: { urls: [only.url], health: { ...health, timeout_s: 0.1 } } });
    expect(rig.verdicts()).toEqual([]); // Nothing was checked yet.
    await until("it is down", () => rig.codes()[0]?.endsWith("no answer within 0.1 s") === true);
    expect(await rig.asked()).toBe("well");
    expect(rig.verdicts()).toEqual([[host, "down"]]);
  });

  it("is forgotten with its configuration", async () => {
    let checked = 0;
    await using origin = await openOrigin((_q, r) => {
      checked++;
      r.writeHead(503).end();
    });
    await using rig = open();
    rig.follow({ backend: { urls: [origin.url], health } });
    await until("it is down", () => rig.codes().length === 1);
    rig.follow({ backend: { urls: [origin.url] } });
    expect(rig.codes()).toEqual([]);
    expect(rig.verdicts()).toEqual([]);
    const before = checked;
    expect(await rig.metrics()).not.toContain("accel_agent_origins_down{");
    rig.follow({ backend: { urls: [origin.url], health } });
    await until("it is checked anew", () => checked > before);
    rig.follow(null);
  });
});

it("checks go where requests may go, and nowhere else", async () => {
  await using rig = open();
  rig.follow({ backend: { urls: ["http://169.254.169.254"], health, connect_timeout_s: 30 } });
  await until("it is refused", () => rig.codes().some((code) => code.includes("link-local")));
  expect(rig.codes().filter((code) => !code.includes("link-local"))).toEqual([]);
});
