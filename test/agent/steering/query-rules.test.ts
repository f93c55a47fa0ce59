// Other rules about queries come into force only when no entry is left that a clear by URL has missed under them.

import { expect, test } from "vitest";
import type { Json } from "../../../src/core/journal/canonical-json.ts";
import { effectiveDevlove } from "../../../src/core/serving/effective-devlove.ts";
import type { ServingState } from "../../../src/core/serving/serving-state.ts";
import { compileSite } from "../../../src/core/serving/site-routes.ts";
import { QueryRules } from "../../../src/agent/steering/query-rules.ts";
import { silentLog } from "../../../src/base/log.ts";

const main = "www.example.com";
const sub = "img.example.com";
const ignoring = { rules: [{ path: "/shop/**", query: { ignore: ["utm_*"] } }] };

/** A state in which each host has the cache of its name; null: no devlove is in force there. */
function stateOf(caches: Readonly<Record<string, object | null>>): ServingState {
  const hosts = Object.entries(caches).map(([name, cache]) => ({
    name,
    site: cache === null ? null : effectiveDevlove({ domains: { [main]: { cache } } }, main, null),
    views: { kind: "none" } as const,
    bots: { mode: "enforce", bad: [], vip: [], pairs: [], policy: null } as never,
  }));
  return { version: 1, domains: [{ name: main, hosts, manifest: null }] };
}

class Rig {
  readonly steps: string[] = [];
  clearedByUrl = true;
  fails = false;
  writes = true;
  readonly kept = new Map<string, Json>();
  rules = this.start();

  /** As after a start of the process. */
  start(): QueryRules {
    this.rules = new QueryRules({
      documents: {
        get: (key) => this.kept.get(key),
        put: (changes) => {
          if (!this.writes) throw new Error("the disk is full");
          for (const [key, value] of Object.entries(changes)) this.kept.set(key, value);
        },
      },
      index: {
        isClearedByUrl: async () => this.clearedByUrl,
        forget: async ({ host }) => {
          if (this.fails) throw new Error("no index");
          this.steps.push(`drop ${host}`);
          return { removed: 1 };
        },
      },
      log: silentLog(),
    });
    return this.rules;
  }

  async publish(caches: Parameters<typeof stateOf>[0]): Promise<void> {
    (await this.rules.prepare(stateOf(caches)))(true);
  }

  take(): readonly string[] {
    return this.steps.splice(0);
  }
}

test("a host that was cleared by URL is dropped when other rules come, and when those of before are back", async () => {
  const rig = new Rig();
  await rig.publish({ [main]: {}, [sub]: {} });
  expect(rig.take()).toEqual([]);
  await rig.publish({ [main]: ignoring, [sub]: {} });
  expect(rig.take()).toEqual([`drop ${main}`]);
  await rig.publish({ [main]: ignoring, [sub]: {} });
  expect(rig.take()).toEqual([]);
  await rig.publish({ [main]: {}, [sub]: ignoring });
  expect(rig.take()).toEqual([`drop ${main}`, `drop ${sub}`]);
});

test("what was never cleared by URL is kept, and so is what other keys of a rule change", async () => {
  const rig = new Rig();
  rig.clearedByUrl = false;
  await rig.publish({ [main]: ignoring });
  expect(rig.take()).toEqual([]);
  rig.clearedByUrl = true;
  const [rule] = ignoring.rules;
  const said = { ttl_s: 60, bypass: true, vary: ["X-App"], cookies: { bypass: ["session"] } };
  await rig.publish({ [main]: { rules: [{ ...rule, ...said }], default: said } });
  expect(rig.take()).toEqual([]);
});

test.each([
  ["its place", { rules: [{ path: "/shop/x" }, ...ignoring.rules] }],
  ["its path", { rules: [{ path: "/shops/**", query: { ignore: ["utm_*"] } }] }],
  ["its parameters", { rules: [{ path: "/shop/**", query: { ignore: ["utm_x"] } }] }],
  ["sorting", { rules: [{ path: "/shop/**", query: { ignore: ["utm_*"], sort: true } }] }],
  ["the default", { ...ignoring, default: { query: { ignore: ["fbclid"] } } }],
  [
    "its match",
    { rules: [{ path: "/shop/**", match: { query: ["a"] }, query: { ignore: ["utm_*"] } }] },
  ],
])("a rule counts as another with %s", async (_what, cache) => {
  const rig = new Rig();
  await rig.publish({ [main]: ignoring });
  rig.take();
  await rig.publish({ [main]: cache });
  expect(rig.take()).toEqual([`drop ${main}`]);
});

test("rules that changed while no process ran are seen at the start", async () => {
  const rig = new Rig();
  await rig.publish({ [main]: ignoring });
  rig.take();
  rig.start();
  await rig.publish({ [main]: ignoring });
  expect(rig.take()).toEqual([]);
  rig.start();
  await rig.publish({ [main]: {} });
  expect(rig.take()).toEqual([`drop ${main}`]);
});

test("a host without a devlove keeps what it was filled by; one that is gone does not", async () => {
  const rig = new Rig();
  await rig.publish({ [main]: ignoring, [sub]: ignoring });
  rig.take();
  await rig.publish({ [main]: null });
  await rig.publish({ [main]: ignoring });
  expect(rig.take()).toEqual([]);
  await rig.publish({ [main]: {} });
  expect(rig.take()).toEqual([`drop ${main}`]);
  await rig.publish({ [main]: {}, [sub]: {} });
  expect(rig.take()).toEqual([]);
});

test("no clear is given between the drop and the new rules", async () => {
  const rig = new Rig();
  const end = await rig.rules.prepare(stateOf({ [main]: ignoring }));
  const given = rig.rules.whileSame(() => rig.steps.push("clear"));
  await new Promise((resolve) => setImmediate(resolve));
  expect(rig.take()).toEqual([`drop ${main}`]);
  end(true);
  await given;
  expect(rig.take()).toEqual(["clear"]);
});

test("where the change does not come into force, or nobody knows, the next one drops again", async () => {
  const rig = new Rig();
  await rig.publish({ [main]: ignoring });
  rig.take();
  (await rig.rules.prepare(stateOf({ [main]: {} })))(false);
  rig.take();
  rig.start();
  await rig.publish({ [main]: ignoring });
  expect(rig.take()).toEqual([`drop ${main}`]);
  const end = await rig.rules.prepare(stateOf({ [main]: {} }));
  rig.take();
  rig.writes = false;
  end(true);
  rig.writes = true;
  await rig.publish({ [main]: {} });
  expect(rig.take()).toEqual([`drop ${main}`]);
});

test("where it cannot be dropped or noted, nothing changes, and clears go on", async () => {
  const rig = new Rig();
  rig.fails = true;
  await expect(rig.publish({ [main]: ignoring })).rejects.toThrow("no index");
  expect(await rig.rules.whileSame(() => "given")).toBe("given");
  rig.fails = false;
  rig.writes = false;
  await expect(rig.publish({ [sub]: ignoring })).rejects.toThrow("the disk is full");
  expect(await rig.rules.whileSame(() => "given")).toBe("given");
  expect(rig.take()).toEqual([]);
});

test("where a URL may be stored is decided by paths, matches and queries alone", () => {
  const targets = ["/shop/a", "/shop/%2e%2e/x", "/x"].map((rawPath) => ({
    rawPath,
    rawQuery: "utm_a=1&id=2",
  }));
  const places = (more: object): readonly unknown[] => {
    const cache = {
      rules: [
        { path: "/shop/**", match: { header: { "X-App": "*" } }, query: { keep: ["id"] }, ...more },
        ...ignoring.rules.map((rule) => ({ ...rule, ...more })),
      ],
      default: more,
    };
    const site = effectiveDevlove({ domains: { [main]: { cache } } }, main, null);
    if (site === null) throw new Error("there is no such domain");
    return targets.map((target) => compileSite(site).storedQueries(target));
  };
  const before = places({});
  expect(before[0]).toEqual(["id=2", "utm_a=1&id=2"]);
  for (const more of [{ bypass: true }, { vary: ["X-App"] }, { cookies: { vary: ["lang"] } }])
    expect(places(more)).toEqual(before);
});
