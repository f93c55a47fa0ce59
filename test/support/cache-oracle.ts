// One request that is stored or not and one that comes later, decided twice: by src/core/http and by the package http-cache-semantics.

import CachePolicy from "http-cache-semantics";
import fc from "fast-check";
import { requestDirectives } from "../../src/core/http/cache-control.ts";
import { currentAgeS } from "../../src/core/http/http-age.ts";
import { planStore } from "../../src/core/http/http-cache.ts";
import { formatHttpDate } from "../../src/core/http/http-date.ts";
import { planRefresh } from "../../src/core/http/http-refresh.ts";
import { decideReuse } from "../../src/core/http/http-reuse.ts";
import { isVariantFor, selectingOf, variantOf } from "../../src/core/http/http-vary.ts";
import { CACHE_DEFAULTS } from "../../src/core/serving/cache-defaults.ts";

/** Names in lower case. */
export type Fields = Readonly<Record<string, string>>;

export type Scene = {
  readonly first: Fields;
  readonly status: number;
  readonly response: Fields;
  /** Between asking and the answer. */
  readonly delayS: number;
  /** Between the answer and the second request. */
  readonly laterS: number;
  readonly second: Fields;
};

export type Decided = {
  readonly isStored: boolean;
  readonly serves: "fresh" | "stale" | "stale, and refreshes" | "no";
  /** Of what is served. */
  readonly ageS?: number;
  /** Of a fetch, where something is stored. */
  readonly conditions?: readonly string[];
  /** Whether what is stored is sent should the origin fail. */
  readonly standsIn?: boolean;
};

export const receivedAtMs = Date.UTC(2026, 0, 1);
/** The origin's own words alone: no rule of the site speaks. */
const settings = CACHE_DEFAULTS;

export const httpDate = (offsetS: number): string => formatHttpDate(receivedAtMs + offsetS * 1_000);

const requestFacts = (first: Fields) => ({
  noStore: requestDirectives(Object.entries(first)).noStore,
  isAuthorized: first["authorization"] !== undefined,
  isRanged: false,
  hasCookies: first["cookie"] !== undefined,
});

const factsOf = ({ status, response, delayS }: Scene) => ({
  status,
  fields: Object.entries(response),
  requestedAtMs: receivedAtMs - delayS * 1_000,
  receivedAtMs,
});

export function decideByUs(scene: Scene): Decided {
  const { first, second, status, laterS } = scene;
  const facts = factsOf(scene);
  const plan = planStore(requestFacts(first), facts, settings);
  if (!plan.store) return { isStored: false, serves: "no" };
  const vary = variantOf(plan.varyNames, selectingOf(Object.entries(first)));
  if (!isVariantFor(vary, selectingOf(Object.entries(second))))
    return { isStored: true, serves: "no", conditions: [] };
  const stored = { ...plan, storedAtMs: receivedAtMs, status, headers: facts.fields };
  const nowMs = receivedAtMs + laterS * 1_000;
  const reuse = decideReuse(stored, {
    request: requestDirectives(Object.entries(second)),
    settings,
    missing: "uri-miss",
    confirmed: true,
    nowMs,
  });
  if (reuse.kind === "refuse") return { isStored: true, serves: "no" };
  if (reuse.kind === "fetch")
    return {
      isStored: true,
      serves: "no",
      conditions: reuse.conditions.map(([name]) => name.toLowerCase()),
      standsIn: reuse.standsIn,
    };
  const isRefreshing = reuse.kind === "serve-stale" && reuse.refreshes;
  return {
    isStored: true,
    serves: reuse.kind === "serve" ? "fresh" : isRefreshing ? "stale, and refreshes" : "stale",
    ageS: currentAgeS(stored, nowMs),
  };
}

/** RFC 9111 §4.2.3, which the package leaves to the Age that it is told: delays and the Date are not asked. */
function correctedAge({ response, delayS }: Scene): number {
  const date = Date.parse(response["date"] ?? "");
  const apparentS = Number.isNaN(date) ? 0 : (receivedAtMs - date) / 1_000;
  return Math.max(0, apparentS, Number(response["age"] ?? 0) + delayS);
}

/** A shared cache without heuristics, as ours is. */
function policyAt(
  now: () => number,
  request: CachePolicy.Request,
  response: CachePolicy.Response,
): CachePolicy {
  class Policy extends CachePolicy {
    now(): number {
      return now();
    }
  }
  const options = { shared: true, cacheHeuristic: 0, immutableMinTimeToLive: 0 };
  return new Policy(request, response, options);
}

export function decideByPackage(scene: Scene): Decided {
  const { first, second, status, laterS } = scene;
  let nowMs = receivedAtMs;
  const response = { ...scene.response, age: String(correctedAge(scene)) };
  const policy = policyAt(
    () => nowMs,
    { method: "GET", headers: { ...first } },
    { status, headers: response },
  );
  const request = { method: "GET", headers: { ...second } };
  const asked = policy.revalidationHeaders(request);
  const conditions = ["if-none-match", "if-modified-since"].filter((name) => name in asked);
  // What nobody could ever use is not stored by us; the package leaves that to whoever stores.
  const isOfUse = policy.timeToLive() > 0 || "etag" in response || "last-modified" in response;
  if (!policy.storable() || !isOfUse) return { isStored: false, serves: "no" };
  nowMs += laterS * 1_000;
  const { response: answer, revalidation } = policy.evaluateRequest(request);
  if (answer !== undefined) {
    const serves = !policy.stale() ? "fresh" : revalidation ? "stale, and refreshes" : "stale";
    return { isStored: true, serves, ageS: policy.age() };
  }
  const { modified } = policy.revalidatedPolicy(request, { status: 503, headers: {} });
  return { isStored: true, serves: "no", conditions, standsIn: !modified };
}

/** One of these, or nothing: `weight` times as often nothing as each of them. */
function maybe<T>(weight: number, ...values: readonly T[]): fc.Arbitrary<T | undefined> {
  return fc.oneof(
    { weight, arbitrary: fc.constant(undefined) },
    { weight: values.length, arbitrary: fc.constantFrom(...values) },
  );
}

/** Without the fields that are undefined. */
const fieldsOf = (given: Readonly<Record<string, string | undefined>>): Fields =>
  Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );

function directives(...menu: readonly string[]): fc.Arbitrary<string | undefined> {
  return fc
    .uniqueArray(fc.constantFrom(...menu), { maxLength: 4, selector: (said) => said.split("=")[0] })
    .map((said) => (said.length === 0 ? undefined : said.join(", ")));
}

const seconds = ["0", "10", "60", "600"];
const each = (name: string): readonly string[] => seconds.map((value) => `${name}=${value}`);

/** Often what caches are told, now and then what is odd. */
const responseControl = fc.oneof(
  {
    weight: 5,
    arbitrary: directives(
      ...each("max-age"),
      ...each("max-age"),
      ...each("stale-while-revalidate"),
      ...each("stale-if-error"),
      "public",
    ),
  },
  {
    weight: 2,
    arbitrary: directives(
      ...each("max-age"),
      ...each("s-maxage"),
      "public",
      "private",
      "no-store",
      "no-cache",
      "no-transform",
      "immutable",
    ),
  },
  directives(
    ...each("max-age"),
    ...each("stale-while-revalidate"),
    'private="x"',
    'no-cache="set-cookie"',
    "must-revalidate",
    "proxy-revalidate",
    "must-understand",
    'max-age="60"',
    "max-age=-1",
    "max-age=x",
    "max-age",
    "max-age=60x",
    "max-age= 60",
    "max-age=",
    "Max-Age=60",
    "max-age=99999999999",
  ),
);
const requestControl = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  {
    weight: 5,
    arbitrary: directives(
      ...each("max-age"),
      ...each("min-fresh"),
      ...each("max-stale"),
      "no-store",
      "no-transform",
    ),
  },
  directives(...each("stale-if-error"), "max-stale", "no-cache", "only-if-cached", "max-age=600"),
);

const selecting = {
  "accept-language": maybe(1, "de", "en"),
  "x-a": maybe(3, "1", "2"),
};

export const scenes: fc.Arbitrary<Scene> = fc.record({
  first: fc
    .record({
      ...selecting,
      "cache-control": maybe(30, "no-store", "no-cache", "max-age=0"),
      authorization: maybe(19, "Basic eA=="),
      cookie: maybe(39, "visitor=1"),
    })
    .map(fieldsOf),
  status: fc.oneof(
    { weight: 150, arbitrary: fc.constant(200) },
    ...[203, 204, 206, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 416, 418, 501].map(
      (status) => ({ weight: 2, arbitrary: fc.constant(status) }),
    ),
  ),
  response: fc
    .record({
      "cache-control": responseControl,
      date: maybe(4, ...[-100, -30, 0, 50].map(httpDate), "yesterday"),
      age: fc.oneof(
        { weight: 19, arbitrary: maybe(3, "0", "30", "100") },
        fc.constantFrom("x", "0, 30"),
      ),
      expires: maybe(9, ...[-60, 0, 60, 600].map(httpDate), "0", "never"),
      etag: maybe(3, '"a"', 'W/"a"'),
      "last-modified": fc.oneof(
        { weight: 19, arbitrary: maybe(3, httpDate(-86_400)) },
        fc.constant("long ago"),
      ),
      vary: fc.oneof(
        { weight: 19, arbitrary: maybe(6, "accept-language", "Accept-Language, X-A") },
        fc.constant("*"),
      ),
      "set-cookie": maybe(39, "a=1"),
      pragma: maybe(39, "no-cache"),
    })
    .map(fieldsOf),
  delayS: fc.constantFrom(0, 0, 0, 5),
  laterS: fc.constantFrom(0, 1, 9, 10, 11, 30, 55, 59, 60, 61, 65, 100, 599, 600, 660, 1_200),
  second: fc
    .record({
      ...selecting,
      "cache-control": requestControl,
      pragma: maybe(39, "no-cache"),
    })
    .map(fieldsOf),
});

/**
 * A stored response with a validator, and a 304 that says one: it has other values of the same fields, for the package takes over no others (RFC 9111 §3.2).
 * Nothing is stored with its Age.
 */
export type Confirmation = { readonly stored: Fields; readonly answer: Fields };

export const confirmations: fc.Arbitrary<Confirmation> = fc
  .tuple(scenes, scenes, fc.boolean())
  .filter(([{ response }]) => "etag" in response || "last-modified" in response)
  .map(([{ response }, { response: later }, isSame]) => {
    const { age: _age, ...stored } = response;
    const { vary: _vary, ...said } = later;
    const validator = "etag" in stored ? "etag" : "last-modified";
    return {
      stored,
      answer: {
        ...Object.fromEntries(Object.entries(said).filter(([name]) => name in stored)),
        ...("date" in stored && { date: said["date"] ?? httpDate(0) }),
        [validator]: (isSame ? undefined : said[validator]) ?? stored[validator] ?? "",
      },
    };
  });

/** `leftS`: how long what was confirmed is fresh from then on. */
export type Confirmed = {
  readonly isOne: boolean;
  readonly isKept?: boolean;
  readonly leftS?: number;
};

export function confirmByUs({ stored, answer }: Confirmation): Confirmed {
  const facts = factsOf(sceneOf({ status: 304, response: answer }));
  const plan = planRefresh(
    { status: 200, headers: Object.entries(stored) },
    facts,
    requestFacts({}),
    settings,
  );
  if (plan.kind !== "refresh") return { isOne: plan.kind !== "other", isKept: false };
  return { isOne: true, isKept: true, leftS: Math.max(0, plan.freshForS - plan.initialAgeS) };
}

export function confirmByPackage({ stored, answer }: Confirmation): Confirmed {
  const request = { method: "GET", headers: {} };
  const before = policyAt(() => receivedAtMs, request, {
    status: 200,
    headers: { ...stored, age: "0" },
  });
  const headers = { ...answer, age: String(correctedAge(sceneOf({ response: answer }))) };
  const { policy, matches } = before.revalidatedPolicy(request, { status: 304, headers });
  if (!matches) return { isOne: false };
  return {
    isOne: true,
    isKept: policy.storable(),
    leftS: Math.max(0, Math.min(policy.maxAge(), 2 ** 31) - policy.age()),
  };
}

/** A scene in which nothing is special but what is given. */
export const sceneOf = (given: Partial<Scene>): Scene => ({
  first: {},
  status: 200,
  response: { "cache-control": "max-age=60" },
  delayS: 0,
  laterS: 10,
  second: {},
  ...given,
});
