// Which origins are checked, how often, and when one counts as down.

import { describe, expect, it } from "vitest";
import {
  checkedOnce,
  checkKey,
  checkPauseS,
  checksMax,
  checksOfDomainMax,
  planChecks,
  unchecked,
} from "../../../src/core/serving/origin-checks.ts";
import { effectiveDevlove, type SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import type { HostBots, ServingState } from "../../../src/core/serving/serving-state.ts";

const health = { path: "/up", interval_s: 5, timeout_s: 1, statuses: [200, 204] };
const bots: HostBots = {
  mode: "enforce",
  unknownBotsCanAccess: null,
  allow: new Set(),
  deny: new Set(),
  vip: [],
  bad: [],
};

/** Domain → its document; sub-domains are those that it names beside the domain. */
function stateOf(documents: Readonly<Record<string, Readonly<Record<string, SiteInput>>>>) {
  const domains = Object.entries(documents).map(([name, sites]) => ({
    name,
    manifest: null,
    hosts: Object.keys(sites).map((host) => {
      const subDomain = { name: host, share_views_and_views_dir_with_main_domain: true };
      const site = effectiveDevlove({ domains: sites }, name, host === name ? null : subDomain);
      return { name: host, site, views: { kind: "none" as const }, bots };
    }),
  }));
  return { version: 1, domains } satisfies ServingState;
}

describe("what is checked", () => {
  it("is each URL of a backend with a check, under the host that its visitors ask for", () => {
    const { checks, leftOut } = planChecks(
      stateOf({
        "a.example": { "a.example": { backend: { urls: ["http://o1", "http://o2"], health } } },
        "b.example": {
          "b.example": { backend: { urls: ["http://o1"], health, host: "in.example" } },
        },
        "c.example": { "c.example": { backend: { urls: ["http://o3"] } } },
        "d.example": { "d.example": {} },
      }),
    );
    const seen = [...checks.values()].map(({ domain, url, host }) => `${domain} ${url} ${host}`);
    expect(seen).toEqual([
      "a.example http://o1 a.example",
      "a.example http://o2 a.example",
      "b.example http://o1 in.example",
    ]);
    expect(leftOut).toBe(0);
  });

  it("is one for sub-domains with the same backend, and another for every other domain", () => {
    const backend = { urls: ["http://o1"], health };
    const { checks, partly } = planChecks(
      stateOf({
        "a.example": { "a.example": { backend }, "x.a.example": { backend } },
        "b.example": { "b.example": { backend } },
      }),
    );
    expect([...checks.keys()]).toEqual([
      checkKey("a.example", "http://o1", { host: "preserve", health }),
      checkKey("b.example", "http://o1", { host: "preserve", health }),
    ]);
    expect([...partly]).toEqual([]);
  });

  it("counts once towards the limit what many sub-domains share", () => {
    const backend = { urls: ["http://o1", "http://o2"], health };
    const names = Array.from({ length: checksOfDomainMax }, (_, at) => `s${at}.a.example`);
    const { checks, leftOut, partly } = planChecks(
      stateOf({
        "a.example": Object.fromEntries(
          ["a.example", ...names, "z.a.example"].map((name) => [
            name,
            { backend: name === "z.a.example" ? { urls: ["http://o3"], health } : backend },
          ]),
        ),
      }),
    );
    expect([checks.size, leftOut, partly.size]).toEqual([3, 0, 0]);
  });

  it("says which domains have origins that are not checked", () => {
    const backend = { urls: ["http://o1"], health };
    const many = { urls: Array.from({ length: checksOfDomainMax + 1 }, (_, i) => `http://o${i}`) };
    const { partly } = planChecks(
      stateOf({
        "a.example": { "a.example": { backend }, "x.a.example": {} },
        "b.example": {
          "b.example": { backend },
          "x.b.example": { backend: { urls: ["http://o2"] } },
        },
        "c.example": { "c.example": { backend: { ...many, health } } },
      }),
    );
    expect([...partly]).toEqual(["b.example", "c.example"]);
  });

  it("ends at the limits, and one domain cannot use them up", () => {
    const many = (name: string): Record<string, SiteInput> =>
      Object.fromEntries(
        Array.from({ length: 10 }, (_, n) => [
          n === 0 ? name : `s${n}.${name}`,
          {
            backend: {
              urls: Array.from({ length: 16 }, (_u, u) => `http://${name}-${n}-${u}`),
              health,
            },
          },
        ]),
      );
    const one = planChecks(
      stateOf({ "a.example": many("a.example"), "b.example": many("b.example") }),
    );
    expect([one.checks.size, one.leftOut]).toEqual([
      2 * checksOfDomainMax,
      2 * (160 - checksOfDomainMax),
    ]);
    const names = Array.from({ length: 20 }, (_, n) => `d${n}.example`);
    const all = planChecks(stateOf(Object.fromEntries(names.map((name) => [name, many(name)]))));
    expect([all.checks.size, all.leftOut]).toEqual([checksMax, 20 * 160 - checksMax]);
  });
});

describe("an origin", () => {
  it("is up until it is checked, with no failure counted", () => {
    expect(unchecked).toEqual({ isDown: false, failures: 0 });
  });

  it("is down after two failures in a row and up after one success", () => {
    const once = checkedOnce(unchecked, false);
    expect(once.isDown).toBe(false);
    expect(checkedOnce(checkedOnce(once, true), false).isDown).toBe(false);
    const twice = checkedOnce(once, false);
    expect(twice).toEqual({ isDown: true, failures: 2 });
    expect(checkedOnce(twice, false).isDown).toBe(true);
    expect(checkedOnce(twice, true)).toEqual(unchecked);
  });

  it("is checked at its interval, and all together at most 100 times a second", () => {
    expect([checkPauseS(10, 1, 0), checkPauseS(10, 1, 0.5), checkPauseS(10, 1, 1)]).toEqual([
      9, 10, 11,
    ]);
    expect(checkPauseS(1, 1_000, 0.5)).toBe(10);
  });
});
