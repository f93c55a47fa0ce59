// What a request gets, in order: each fact is wanted only where everything before it lets the request through.

import { expect, test } from "vitest";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { parseTarget } from "../../../src/core/http/request-path.ts";
import { effectiveDevlove, type SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import type { RequestHead } from "../../../src/core/serving/request-check.ts";
import {
  nextStep,
  nothingKnown,
  type HostFact,
  type RequestFacts,
} from "../../../src/core/serving/request-plan.ts";
import { compileSite } from "../../../src/core/serving/site-routes.ts";
import { ruleMet } from "../../support/rule-met.ts";

const name = "www.example.com";
const backend = { urls: ["http://127.0.0.1:1"] };

type Asked = Partial<Omit<RequestHead, "fields">> & { readonly fields?: readonly Field[] };

function served(input: SiteInput | null): HostFact {
  const host = { name };
  if (input === null) return { kind: "served", host, compiled: undefined };
  const site = effectiveDevlove({ domains: { [name]: input } }, name, null);
  return { kind: "served", host, compiled: { site, routes: compileSite(site) } };
}

function factsOf(asked: Asked = {}, known: Partial<RequestFacts> = {}): RequestFacts {
  const { method = "GET", url = "/a", httpVersion = "1.1", hasBody = false } = asked;
  const fields: readonly Field[] = [...(asked.fields ?? [["Host", name]])];
  return {
    request: { method, url, httpVersion, fields, hasBody },
    target: parseTarget(url),
    scheme: "https",
    startedWallMs: 1_000,
    ...nothingKnown,
    ...known,
  };
}

const withField = (field: string, value: string): Asked => ({
  fields: [
    ["Host", name],
    [field, value],
  ],
});

const upgradeTo = (protocol: string, connection = "Upgrade"): Asked => ({
  fields: [
    ["Host", name],
    ["Upgrade", protocol],
    ["Connection", connection],
  ],
});

/** What comes next, told in a word or two. */
function next(facts: RequestFacts): string {
  const step = nextStep(facts);
  if (typeof step === "string") return `? ${step}`;
  if (step.kind === "refused") return `${step.status} ${step.because}`;
  if (step.kind === "redirect") return `${step.status} ${step.by} ${step.to}`;
  if (step.kind === "pass") return `pass ${step.reason}`;
  if (step.kind === "nothing-stored") return `nothing-stored ${step.passed}`;
  if (step.kind === "options") return `options ${step.allow}`;
  return step.kind;
}

test.each<[string, Asked, string]>([
  ["a plain request", {}, "? host"],
  ["another version", { httpVersion: "3" }, "505 request"],
  ["two hosts", withField("host", "b.example"), "400 request"],
  ["no host", { fields: [] }, "400 request"],
  ["TRACE", { method: "TRACE" }, "405 request"],
  ["an odd target", { url: "a" }, "400 request"],
  ["an odd target of an odd method", { url: "a", method: "CONNECT" }, "405 request"],
  [
    "OPTIONS of the server",
    { url: "*", method: "OPTIONS" },
    "options GET, HEAD, OPTIONS, POST, PUT, PATCH, DELETE",
  ],
])("at arrival: %s", (_, asked, said) => {
  expect(next(factsOf(asked))).toBe(said);
});

test.each<[HostFact, string]>([
  [{ kind: "starting" }, "503 starting"],
  [{ kind: "malformed" }, "400 host"],
  [{ kind: "unknown", host: "" }, "421 host"],
  [{ kind: "unknown", host: "b.example" }, "421 host"],
  [served(null), "? verdict"],
  [served({}), "? verdict"],
])("with the host %j", (host, said) => {
  expect(next(factsOf({}, { host }))).toBe(said);
});

test.each<[string, SiteInput | null, Asked, string]>([
  ["no devlove", null, {}, "503 no-devlove"],
  ["a WebSocket", { backend }, upgradeTo("websocket"), "upgrade"],
  ["a WebSocket by a field of several members", { backend }, upgradeTo("WebSocket", "keep-alive, Upgrade"), "upgrade"],
  ["a WebSocket where it is redirected", { backend, redirects: [{ from: "/a", to: "/b", status: 302 }] }, upgradeTo("websocket"), "302 rule /b"],
  ["another protocol", { backend }, { ...upgradeTo("tcp"), method: "POST" }, "upgrade"],
  ["a WebSocket without a backend", {}, upgradeTo("websocket"), "? file"],
  ["a WebSocket of HTTP/1.0", { backend }, { ...upgradeTo("websocket"), httpVersion: "1.0" }, "? file"],
  ["a WebSocket of HTTP/2", { backend }, { ...upgradeTo("websocket"), httpVersion: "2" }, "upgrade"],
  ["an upgrade with a body", { backend }, { ...upgradeTo("websocket"), hasBody: true }, "? file"],
  ["an upgrade that Connection does not name", { backend }, upgradeTo("websocket", "keep-alive"), "? file"],
  ["h2c, which may be declined", { backend }, upgradeTo("h2c"), "? file"],
  ["h2c among others", { backend }, upgradeTo("websocket, h2c"), "? file"],
  ["another HTTP", { backend }, upgradeTo("HTTP/2.0"), "? file"],
  ["TLS", { backend }, upgradeTo("TLS/1.2"), "? file"],
  ["a large body", { limits: { body_bytes_max: 9 }, redirects: [{ from: "/*", to: "/b", status: 302 }] }, withField("Content-Length", "10"), "413 body"],
  ["a redirect", { redirects: [{ from: "/a", to: "/b", status: 302 }] }, {}, "302 rule /b"],
  ["a read", { backend }, {}, "? file"],
  ["a write to a backend", { backend }, { method: "POST" }, "? rule"],
  ["a write to files", {}, { method: "POST" }, "? file"],
])("of a site: %s", (_, site, asked, said) => {
  const host = served(site);
  expect(next(factsOf(asked, { host, verdict: { kind: "block" } }))).toBe("blocked");
  expect(next(factsOf(asked, { host, verdict: { kind: "would-block" } }))).toBe(said);
}); // prettier-ignore

test("an open challenge is answered before a verdict, whatever the site says", () => {
  const challenges = new Map([["t-1", { keyAuthorization: "t-1.key", untilMs: 1_001 }]]);
  const shut = served({ tls: { redirect_http: true }, limits: { body_bytes_max: 0 } });
  const told = (host: HostFact, startedWallMs: number, token: string): string =>
    next(factsOf({ url: `/.well-known/acme-challenge/${token}` }, { host, startedWallMs }));
  for (const site of [shut, served(null)]) {
    if (site.kind !== "served") throw new Error("a host is expected");
    const host: HostFact = { ...site, host: { name, challenges } };
    expect(told(host, 1_000, "t-1")).toBe("challenge");
    expect(told(host, 1_001, "t-1")).toBe("? verdict");
    expect(told(host, 1_000, "t-2")).toBe("? verdict");
  }
});

test("what a site wants asked over HTTPS is redirected before anything that it says of paths", () => {
  const redirects = [{ from: "/*", to: "/b", status: 302 }] as const;
  const host = served({ tls: { redirect_http: true }, redirects });
  const known = { host, verdict: { kind: "allow" } } as const;
  expect(next(factsOf({}, { ...known, scheme: "http" }))).toBe("redirect-to-https");
  expect(next(factsOf({}, { ...known, scheme: "https" }))).toBe("302 rule /b");
});

test("limits are asked behind the verdict, before all else that a site says, and of nobody who is exempt", () => {
  const requests = [{ path: "/**", rate: 1 }];
  const redirects = [{ from: "/*", to: "/b", status: 302 }] as const;
  const host = served({ limits: { requests, body_bytes_max: 1 }, redirects, backend });
  const allow = { kind: "allow" } as const;
  const asked = withField("Content-Length", "10");
  const over = { kind: "over", waitS: 7 } as const;
  const said = (known: Partial<RequestFacts>): string => next(factsOf(asked, { host, ...known }));
  expect(said({ verdict: { kind: "block" }, limit: over })).toBe("blocked");
  expect(said({ verdict: allow })).toBe("? limit");
  expect(said({ verdict: allow, limit: over })).toBe("limited");
  expect(said({ verdict: allow, limit: { kind: "within" } })).toBe("413 body");
  // What is known of the cache from before changes nothing.
  const rule = { file: { kind: "none" }, rule: ruleOfHost(host) } as const;
  expect(said({ verdict: allow, ...rule })).toBe("? limit");
  expect(said({ verdict: allow, ...rule, limit: over })).toBe("limited");
  const set = { host: name, version: 1 };
  expect(said({ verdict: { kind: "allow", set: { ...set, kind: "vip" } } })).toBe("413 body");
  expect(said({ verdict: { kind: "allow", set: { ...set, kind: "bad" } } })).toBe("? limit");
  expect(said({ verdict: { kind: "would-block", set: { ...set, kind: "vip" } } })).toBe("? limit");
});

test("who is sent to HTTPS is not counted", () => {
  const host = served({
    tls: { redirect_http: true },
    limits: { requests: [{ path: "/**", rate: 1 }] },
  });
  const known = { host, verdict: { kind: "allow" } } as const;
  expect(next(factsOf({}, { ...known, scheme: "http" }))).toBe("redirect-to-https");
  expect(next(factsOf({}, { ...known, scheme: "https" }))).toBe("? limit");
});

function ruleOfHost(host: HostFact) {
  if (host.kind !== "served" || host.compiled === undefined) throw new Error("no site");
  return ruleMet(host.compiled.routes, "/a");
}

const allowed = { verdict: { kind: "allow" } } as const;
const pages = { single_page: "index.html", not_found: "404.html" };

test.each<[string, SiteInput, Asked, Partial<RequestFacts>, string]>([
  ["a file", { backend }, {}, { file: { kind: "file" } }, "file"],
  ["a directory", { backend }, { url: "/a?b=1" }, { file: { kind: "directory", path: "/a/" } }, "301 directory /a/?b=1"],
  ["a file that is written", { backend }, {}, { file: { kind: "changing" } }, "503 changing"],
  ["no file, a backend", { backend, ...pages }, {}, { file: { kind: "none" } }, "? rule"],
  ["no file, pages", pages, {}, { file: { kind: "none" } }, "? single-page"],
  ["a single page", pages, {}, { file: { kind: "none" }, singlePage: { kind: "file" } }, "single-page"],
  ["no single page", pages, {}, { file: { kind: "none" }, singlePage: { kind: "none" } }, "? not-found-page"],
  ["the page for what is not there", pages, {}, { file: { kind: "none" }, singlePage: { kind: "none" }, notFoundPage: { kind: "file" } }, "not-found-page"],
  ["neither page", pages, {}, { file: { kind: "none" }, singlePage: { kind: "none" }, notFoundPage: { kind: "none" } }, "404 nothing-there"],
  ["no pages", {}, {}, { file: { kind: "none" } }, "404 nothing-there"],
  ["a write to a file", pages, { method: "PUT" }, { file: { kind: "file" } }, "405 method"],
  ["a write to a directory", pages, { method: "PUT" }, { file: { kind: "directory", path: "/a/" } }, "405 method"],
  ["OPTIONS of a file", pages, { method: "OPTIONS" }, { file: { kind: "file" } }, "options GET, HEAD, OPTIONS"],
  ["a write to nothing", pages, { method: "PUT" }, { file: { kind: "none" } }, "404 nothing-there"],
])("of files: %s", (_, site, asked, known, said) => {
  expect(next(factsOf(asked, { host: served(site), ...allowed, ...known }))).toBe(said);
}); // prettier-ignore

const onlyIfCached = withField("Cache-Control", "only-if-cached");

test.each<[string, NonNullable<SiteInput["cache"]>, Asked, string]>([
  ["a read", {}, {}, "? stored"],
  ["a lone mark", {}, { url: "/a?" }, "pass request"],
  ["a write", {}, { method: "POST" }, "pass method"],
  ["a write for what is stored", {}, { method: "POST", ...onlyIfCached }, "pass method"],
  ["a bypass", { default: { bypass: true } }, {}, "pass bypass"],
  ["a bypass for what is stored", { default: { bypass: true } }, onlyIfCached, "nothing-stored bypass"],
  ["a pause", { paused_until: "1970-01-01T00:00:01.001Z", default: { bypass: true } }, {}, "pass paused"],
  ["a pause that is over", { paused_until: "1970-01-01T01:00:01+01:00" }, {}, "? stored"],
  ["a write in a pause", { paused_until: "1970-01-01T01:00:02z" }, { method: "POST" }, "pass method"],
  ["somebody's cookies", { default: { ttl_s: 1 } }, withField("Cookie", "sid=1"), "pass cookie"],
])("of a backend: %s", (_, cache, asked, said) => {
  const host = served({ backend, cache });
  const compiled = host.kind === "served" ? host.compiled : undefined;
  const rule = compiled && ruleMet(compiled.routes, "/a");
  const file = { kind: "none" } as const;
  expect(next(factsOf(asked, { host, ...allowed, file, rule }))).toBe(said);
}); // prettier-ignore

test.each([
  ["nothing", undefined, false, "fetch"],
  ["nothing, and only that is wanted", undefined, true, "nothing-stored undefined"],
  ["what is fresh", 60, false, "serve"],
  ["what is not", 0, false, "fetch"],
])("with %s stored", (_, freshForS, isOnlyIfCached, said) => {
  const host = served({ backend });
  const compiled = host.kind === "served" ? host.compiled : undefined;
  const rule = compiled && ruleMet(compiled.routes, "/a");
  const base = freshForS === undefined ? undefined : { status: 200, headers: [], storedAtMs: 0, initialAgeS: 0, freshForS };
  const request = { noStore: false, noCache: false, onlyIfCached: isOnlyIfCached, maxAgeS: undefined, minFreshS: 0, maxStaleS: 0, staleIfErrorS: 0 };
  const settings = { stale_while_revalidate_s: 0, stale_if_error_s: 0 };
  const stored = { base, request, settings, missing: "uri-miss", confirmed: true, nowMs: 1_000 } as const;
  expect(next(factsOf({}, { host, ...allowed, file: { kind: "none" }, rule, stored }))).toBe(said);
}); // prettier-ignore
