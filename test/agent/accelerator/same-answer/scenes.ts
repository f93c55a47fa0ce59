// Scenes by seed: a site with its settings, and by whom and over what it is asked.

import { pairAllow, pairDeny, type HostBots } from "../../../../src/core/serving/serving-state.ts";
import type { CacheInput, SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { hostSetOf } from "../../../support/bot-tables.ts";
import { createRandom } from "../../../support/outside-random.ts";
import type { EdgeOptions } from "../edge.ts";

export type Carrier = "plain" | "proxy" | "tls" | "http2";
export type ViewsKind = "none" | "manifest" | "directory";

/** Chance, with the ways of asking for it that scenes need. */
export class Dice {
  readonly #random: ReturnType<typeof createRandom>;

  constructor(seed: number) {
    this.#random = createRandom(seed);
    // Seeds that are neighbours begin alike.
    for (let warm = 0; warm < 8; warm++) this.#random.next();
  }

  below(end: number): number {
    return Math.floor(this.#random.next() * end);
  }

  one<T>(from: readonly [T, ...T[]]): T {
    return from[this.below(from.length)] ?? from[0];
  }

  happens(share: number): boolean {
    return this.#random.next() < share;
  }
}

export type Scene = {
  readonly seed: number;
  readonly carrier: Carrier;
  readonly options: Pick<
    EdgeOptions,
    "trusted" | "forwardedHeader" | "proxyProtocol" | "tlsPort" | "defaultDomain"
  >;
  /** Requests wait for room for their records. */
  readonly waitsForRoom: boolean;
  readonly site: SiteInput;
  readonly shop: SiteInput;
  readonly views: ViewsKind;
  readonly steps: number;
  readonly drains: boolean;
};

export function sceneOf(seed: number, originUrl: string, steps: number): Scene {
  const dice = new Dice(seed);
  const carrier = dice.one<Carrier>([
    "plain", "plain", "plain", "plain", "plain", "plain", "proxy", "tls", "http2",
  ]); // prettier-ignore
  const isTrusted = carrier === "proxy" || dice.happens(0.5);
  const waitsForRoom = dice.happens(0.1);
  return {
    seed,
    carrier,
    options: {
      trusted: isTrusted ? ["127.0.0.1", "10.0.0.0/8"] : [],
      forwardedHeader: dice.one(["x-forwarded-for", "x-forwarded-for", "forwarded"]),
      proxyProtocol: carrier === "proxy" ? "required" : "off",
      tlsPort: dice.one([null, 443, 8443]),
      ...(dice.happens(0.3) && { defaultDomain: "www.example.com" }),
    },
    waitsForRoom,
    site: siteOf(dice, originUrl),
    shop: siteOf(dice, originUrl),
    views: dice.one<ViewsKind>([
      "none",
      "none",
      "none",
      "none",
      "none",
      "none",
      "manifest",
      "directory",
    ]),
    // Who waits for room waits for a timer.
    steps: waitsForRoom ? Math.ceil(steps / 6) : steps,
    drains: carrier !== "http2" && dice.happens(0.1),
  };
}

/** Chooses another site of the same host, as a new devlove would be. */
export function siteOf(dice: Dice, originUrl: string): SiteInput {
  const stale = dice.happens(0.2);
  return {
    ...(dice.happens(0.95) && { backend: { urls: [originUrl], retries: 0 } }),
    compression: dice.happens(0.6),
    images: dice.one<NonNullable<SiteInput["images"]>>([
      {},
      { optimize: true },
      { optimize: true, widths: [320, 640] },
      { optimize: true, formats: ["webp"], widths: [640] },
      { optimize: true, formats: [], widths: [640] },
    ]),
    headers: {
      set: dice.one<Record<string, string>>([
        {},
        {},
        { "X-Frame-Options": "DENY" },
        { "Content-Type": "text/plain", "X-Set": "a, b" },
        { ETag: '"site"', Vary: "X-Device" },
        { "Cache-Control": "no-transform" },
        { Date: "Tue, 01 Jan 2030 00:00:00 GMT" },
      ]),
      remove: dice.one<string[]>([[], [], ["X-Powered-By"], ["Date"], ["ETAG", "last-modified"]]),
    },
    redirects: [
      { from: "/old/**", to: "/new/", status: dice.one([301, 302, 307, 308]) },
      { from: "/gone", to: "https://other.example/", status: 302 },
    ],
    tls: { redirect_http: dice.happens(0.1), hsts_s: dice.one([0, 600, 31_536_000]) },
    limits: {
      requests: dice.one<NonNullable<NonNullable<SiteInput["limits"]>["requests"]>>([
        [],
        [],
        [{ path: "/**", rate: 40, per_s: 60 }],
        [
          { path: "/q/**", rate: 1, per_s: 60, burst: 2, mode: "monitor" },
          { path: "/**", methods: ["GET"], rate: 15, per_s: 3_600 },
        ],
      ]),
    },
    ...(dice.happens(0.3) && { single_page: "index.html" }),
    ...(dice.happens(0.3) && { not_found: "404.html" }),
    cache: {
      rules: [
        { path: "/r/**", ttl_s: dice.one([2, 60]), browser_ttl_s: dice.one([5, 0]) },
        { path: "/api/**", bypass: true },
        { path: "/q/**", query: { keep: ["id"] } },
        ...dice.one<NonNullable<NonNullable<SiteInput["cache"]>["rules"]>>([
          [],
          [],
          [{ path: "/**", match: { query: ["utm_*", "a=1"] }, bypass: true }],
          [{ path: "/**", match: { header: { "Accept-Language": "*" } }, ttl_s: 60 }],
          [
            { path: "/c/**", match: { header: { "X-Device": "*" } }, bypass: true },
            { path: "/**", match: { header: { "User-Agent": "*o*" } } },
          ],
          [{ path: "/**", ttl_s: 20, vary: ["Accept-Language", "X-Device"] }],
          [{ path: "/**", ttl_s: 20, headers: dice.one(ruleHeaders) }],
          [{ path: "/img/**", vary: ["Accept"] }],
          [
            {
              path: "/**",
              match: { media_type: dice.one([["text/*"], ["text/plain", "image/*"]]) },
              ttl_s: 20,
              browser_ttl_s: 4,
              headers: { response: { set: { "X-Frame-Options": "type" }, remove: ["Date"] } },
            },
            { path: "/c/**", ttl_s: 3 },
          ],
        ]),
      ],
      default: {
        query: dice.one([{ ignore: [] }, { ignore: ["utm_*"] }, { ignore: ["utm_*"], sort: true }]),
        cookies: dice.one<NonNullable<CacheInput["cookies"]>>([
          {},
          { ignore: ["ab_*"] },
          { ignore: ["*"] },
          { bypass: ["session"], vary: ["lang"], ignore: ["ab_*"] },
        ]),
        ...(dice.happens(0.3) && { negative_ttl_s: 30 }),
        ...(stale && { stale_while_revalidate_s: 5, stale_if_error_s: 10 }),
      },
    },
  };
}

const ruleHeaders: readonly [RuleHeaders, RuleHeaders, RuleHeaders] = [
  { response: { set: { "X-Frame-Options": "rule", Vary: "X-Other" }, remove: ["Date", "ETag"] } },
  { request: { set: { "X-Device": "one" }, remove: ["Accept-Language", "User-Agent"] } },
  { response: { set: { "Content-Type": "text/x" } }, request: { remove: ["x-device"] } },
];
type RuleHeaders = NonNullable<CacheInput["headers"]>;

const vipBot = "Googlebot";
const badBot = "AhrefsBot";
const vip = hostSetOf([{ bot: vipBot, range: "198.51.100.0/24" }]);
const bad = [
  hostSetOf([{ bot: badBot, range: "192.0.2.0/24" }]),
  hostSetOf([{ bot: badBot, range: "192.0.2.0/25" }, { bot: "other", range: "203.0.113.7/32" }]), // prettier-ignore
  hostSetOf([{ bot: badBot, range: "192.0.2.0/24" }], [pairAllow]),
  hostSetOf([{ bot: badBot, range: "127.0.0.0/8" }, { bot: "x", range: "192.0.2.9/32" }], [0, pairDeny]), // prettier-ignore
] as const;

export function botsOf(dice: Dice): HostBots {
  return {
    mode: dice.one(["enforce", "monitor"]),
    unknownBotsCanAccess: dice.one([true, true, false, null]),
    allow: new Set(dice.happens(0.3) ? ["curl"] : []),
    deny: new Set(dice.happens(0.3) ? ["wget"] : []),
    vip: dice.happens(0.5) ? [vip] : [],
    // Who comes without a proxy is in the last one.
    bad: dice.happens(0.7) ? [dice.one([bad[0], bad[0], bad[1], bad[1], bad[2], bad[3]])] : [],
  };
}
