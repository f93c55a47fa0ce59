// From what central said and what the host says to what workers serve: which devlove, which views, which bots.

import { expect, test } from "vitest";
import {
  composeState,
  type ComposeInputs,
  type EffectivePolicy,
  type LocalSite,
  type ReadyViewset,
} from "../../../src/core/serving/compose-state.ts";
import type { Devlove } from "../../../src/core/serving/devlove.ts";
import { pairAllow, pairDeny, type ServedHost } from "../../../src/core/serving/serving-state.ts";
import { tableOf } from "../../support/bot-tables.ts";

const main = "a.example";
const sub = "sub.a.example";
const table = new SharedArrayBuffer(4);

/** Told apart by `static.max_age_s`. */
function devlove(ageS: number, viewsDir = "."): Devlove {
  return { domains: { [main]: { static: { max_age_s: ageS }, views_dir: viewsDir } } };
}

const ofViewset = (views: SharedArrayBuffer | null, dir = "."): ReadyViewset => ({
  manifest: "m",
  devlove: devlove(1, dir),
  table: views,
});
const ofHost = (dir = ".", valid = true): LocalSite => ({
  viewsDir: "/srv/a",
  devlove: valid ? devlove(2, dir) : null,
});

function inputs(more: Partial<ComposeInputs>): ComposeInputs {
  return {
    domains: [
      {
        name: main,
        sub_domains: [{ name: sub, share_views_and_views_dir_with_main_domain: true }],
      },
    ],
    policies: [],
    set: () => undefined,
    viewset: () => undefined,
    local: () => undefined,
    ...more,
  };
}

function hostsOf(more: Partial<ComposeInputs>): readonly [ServedHost, ServedHost] {
  const [first, second] = composeState(1, inputs(more)).domains[0]?.hosts ?? [];
  if (first === undefined || second === undefined) throw new Error("two hosts expected");
  return [first, second];
}

const manifest = (prefix = "") => ({ kind: "manifest", table, prefix });
const directory = (root: string, prefix?: string) => ({
  kind: "directory",
  root,
  ...(prefix !== undefined && { prefix }),
});
const none = { kind: "none" };

test.each([
  ["nothing", undefined, undefined, null, none],
  ["a viewset with views", ofViewset(table), undefined, 1, manifest()],
  [
    "a viewset with views in a folder",
    ofViewset(table, "public/www"),
    undefined,
    1,
    manifest("public/www/"),
  ],
  ["a viewset with views before the host's own", ofViewset(table), ofHost(), 1, manifest()],
  ["a viewset without views", ofViewset(null), undefined, 1, none],
  ["a viewset without views, the host's own", ofViewset(null), ofHost(), 1, directory("/srv/a")],
  [
    "a viewset without views, its folder of the host's own",
    ofViewset(null, "www"),
    ofHost("other"),
    1,
    directory("/srv/a", "www/"),
  ],
  [
    "a viewset without views, the host's views without a valid devlove",
    ofViewset(null),
    ofHost(".", false),
    1,
    directory("/srv/a"),
  ],
  ["the host's own", undefined, ofHost("www"), 2, directory("/srv/a", "www/")],
  ["the host's own without a valid devlove", undefined, ofHost(".", false), null, none],
])("%s", (_name, viewset, local, ageS, views) => {
  const hosts = hostsOf({ viewset: () => viewset, local: () => local });
  for (const host of hosts) {
    expect(host.site?.static.max_age_s ?? null).toBe(ageS);
    expect(host.views).toEqual(views);
  }
  expect(hosts.map(({ name }) => name)).toEqual([main, sub]);
});

test("a sub-domain that does not share its views has the folder of its name", () => {
  const domains = [
    { name: main, sub_domains: [{ name: sub, share_views_and_views_dir_with_main_domain: false }] },
  ];
  const [, ofManifest] = hostsOf({ domains, viewset: () => ofViewset(table) });
  expect(ofManifest.views).toEqual(manifest(`${sub}/`));
  const [, ofDirectory] = hostsOf({ domains, local: () => ofHost() });
  expect(ofDirectory.views).toEqual(directory("/srv/a", `${sub}/`));
});

test("domains keep their order and do not see each other's inputs", () => {
  const state = composeState(
    7,
    inputs({
      domains: [
        { name: "b.example", sub_domains: [] },
        { name: main, sub_domains: [] },
      ],
      viewset: (domain) => (domain === main ? ofViewset(table) : undefined),
    }),
  );
  expect(state.version).toBe(7);
  expect(state.domains.map(({ name, manifest: digest }) => [name, digest])).toEqual([
    ["b.example", null],
    [main, "m"],
  ]);
});

test("the same inputs give the same state", () => {
  const same = inputs({ viewset: () => ofViewset(table), policies: [policy(main, true)] });
  expect(composeState(3, same)).toEqual(composeState(3, same));
});

function policy(
  domain: string,
  unknown: boolean | null,
  allow: readonly string[] = [],
  deny: readonly string[] = [],
): EffectivePolicy {
  return { domain, unknown_bots_can_access: unknown, allow, deny };
}

test.each([
  ["none", [], null, null],
  ["the domain's", [policy(main, true)], true, true],
  ["the sub-domain's own", [policy(main, true), policy(sub, false)], true, false],
  ["a sub-domain's that says nothing of it", [policy(sub, null), policy(main, true)], true, true],
  ["a sub-domain's alone", [policy(sub, true)], null, true],
  ["another domain's", [policy("b.example", true)], null, null],
])("policy for unknown bots: %s", (_name, policies, ofMain, ofSub) => {
  const [first, second] = hostsOf({ policies });
  expect([first.bots.unknownBotsCanAccess, second.bots.unknownBotsCanAccess]).toEqual([
    ofMain,
    ofSub,
  ]);
});

test("what is said of classes of bots comes from the policy that speaks of unknown bots, and from no other", () => {
  const classes = { feed: true, crawler: false };
  const said = { ...policy(main, false), classes };
  expect(hostsOf({ policies: [said] }).map(({ bots }) => bots.classes)).toEqual([classes, classes]);
  const own = policy(sub, true);
  expect(hostsOf({ policies: [said, own] }).map(({ bots }) => bots.classes)).toEqual([
    classes,
    undefined,
  ]);
});

test("a sub-domain's own pair decides before the main domain's; nobody is both allowed and denied", () => {
  const [first, second] = hostsOf({
    policies: [policy(main, null, ["x", "y"], ["z"]), policy(sub, null, ["z"], ["x"])],
  });
  expect([first.bots.allow, first.bots.deny]).toEqual([new Set(["x", "y"]), new Set(["z"])]);
  expect([second.bots.allow, second.bots.deny]).toEqual([new Set(["y", "z"]), new Set(["x"])]);
});

test("a sub-domain is judged by its own sets first, then by the main domain's", () => {
  const [ofMain, ofSub] = [1, 2].map((version) => ({ version, table: tableOf([]) }));
  const set: ComposeInputs["set"] = (host, kind) =>
    kind === "vip" ? undefined : host === main ? ofMain : ofSub;
  const [first, second] = hostsOf({ set });
  expect(first.bots.bad).toMatchObject([{ host: main, version: 1 }]);
  expect(second.bots.bad).toMatchObject([
    { host: sub, version: 2 },
    { host: main, version: 1 },
  ]);
  expect(second.bots.bad[0]?.table).toBe(ofSub?.table);
  expect(second.bots.vip).toEqual([]);
});

test("pairs are bytes by owner, for those names that the set holds", () => {
  const range = "192.0.2.0/24";
  const table = tableOf(["c", "b", "a", "d"].map((bot) => ({ bot, range })));
  const policies = [policy(main, null, ["b", "elsewhere"], ["c"])];
  const [first] = hostsOf({ policies, set: () => ({ version: 1, table }) });
  expect(Array.from(first.bots.bad[0]?.pairs ?? [])).toEqual([0, 0, pairAllow, pairDeny]);
  const [other] = hostsOf({ policies: [], set: () => ({ version: 1, table }) });
  expect(other.bots.bad[0]?.pairs.length).toBe(0);
});

test("bots are enforced unless the devlove in force says monitor", () => {
  const monitored = { domains: { [main]: { bots: { mode: "monitor" as const } } } };
  const [served] = hostsOf({ viewset: () => ({ manifest: "m", devlove: monitored, table }) });
  expect(served.bots.mode).toBe("monitor");
  const [unserved] = hostsOf({});
  expect(unserved.bots.mode).toBe("enforce");
});
