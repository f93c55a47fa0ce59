// The plan of a request, walked with what a model knows, says what the visitor gets; and so does `accel-agent why` of what it is asked about.

import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { parseUrlArgument } from "../../../src/agent/admin/url-argument.ts";
import type { EntryKey } from "../../../src/agent/cache/entry.ts";
import { why } from "../../../src/agent/why.ts";
import { blobPath } from "../../../src/core/blob-path.ts";
import { requestDirectives } from "../../../src/core/http/cache-control.ts";
import { fieldValue, type Field } from "../../../src/core/http/http-fields.ts";
import { passSaid } from "../../../src/core/http/http-pass.ts";
import { selectStored } from "../../../src/core/http/http-reuse.ts";
import {
  normalAcceptEncoding,
  selectingBy,
  toldCookiesName,
} from "../../../src/core/http/http-vary.ts";
import { toldToShare } from "../../../src/core/http/request-cookies.ts";
import { decodePath, parseTarget } from "../../../src/core/http/request-path.ts";
import { parseSha256 } from "../../../src/core/ids.ts";
import type { CacheInput, SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import { encodeManifestTable } from "../../../src/core/serving/manifest-table.ts";
import {
  nextStep,
  nothingKnown,
  type FileFact,
  type RequestAnswer,
  type RequestFacts,
} from "../../../src/core/serving/request-plan.ts";
import type { Views } from "../../../src/core/serving/serving-state.ts";
import { compileSite, queryRuleName } from "../../../src/core/serving/site-routes.ts";
import { tempDir } from "../../support/temp-dir.ts";
import { ask, host, openEdge, openOrigin, stateOf, type Edge } from "./edge.ts";

const files = ["a.txt", "index.html", "dir/index.html", "gone.html", ".hidden"];

function storeFiles(blobsDir: string): Views {
  const stored = files.map((path) => {
    const sha256 = parseSha256(createHash("sha256").update(path).digest("hex"));
    if (sha256 === undefined) throw new Error("no digest");
    mkdirSync(dirname(blobPath(blobsDir, sha256)), { recursive: true });
    writeFileSync(blobPath(blobsDir, sha256), path);
    return { path, sha256, size: path.length, mime: "text/plain" };
  });
  return { kind: "manifest", table: encodeManifestTable(stored), prefix: "" };
}

/** Of eight, so many. */
const seldom = (count: number): fc.Arbitrary<boolean> => fc.nat({ max: 7 }).map((at) => at < count);

const ruleOf: fc.Arbitrary<CacheInput> = fc
  .record({
    ttl: fc.constantFrom(undefined, undefined, 0, 60),
    bypass: seldom(1),
    query: fc.constantFrom({}, { ignore: ["u"] }, { keep: ["b"] }, { sort: true }),
    cookies: fc.constantFrom({}, {}, { ignore: ["s*"] }, { vary: ["lang"], bypass: ["sid"] }),
  })
  .map(({ ttl, ...rule }) => ({ ...rule, ...(ttl !== undefined && { ttl_s: ttl }) }));

const redirects: NonNullable<SiteInput["redirects"]>[number][] = [
  { from: "/old", to: "/new", status: 301 },
  { from: "/", to: "/dir/", status: 302 },
];

const sitesOf = (origin: string): fc.Arbitrary<SiteInput> =>
  fc.record({
    backend: seldom(3).map((none) => (none ? null : { urls: [origin], retries: 0 })),
    index: fc.constantFrom([], ["index.html"], [".hidden", "index.html"]),
    single_page: fc.constantFrom("index.html", "no.html"),
    not_found: fc.constantFrom("gone.html", "no.html"),
    redirects: fc.subarray(redirects),
    cache: fc.record({
      default: ruleOf,
      rules: fc.array(
        ruleOf.map((said) => ({ ...said, path: "/x*" })),
        { maxLength: 1 },
      ),
    }),
    tls: fc.record({ redirect_http: seldom(1) }),
    limits: fc.constantFrom({ body_bytes_max: 3 }, { body_bytes_max: 1_000 }),
  });

const ofBackend = ["/x", "/x", "/x", "/y", "/y", "/w", "/w", "/z"];
const ofFiles = ["/", "/a.txt", "/dir", "/dir/", "/.hidden"];
const paths = [...ofBackend, ...ofFiles, "/old", "/%2e%2e/x", "//x", "/a%2Fb"];
const requestOf = fc.record({
  method: fc.constantFrom(
    ...Array.from({ length: 12 }, () => "GET"),
    "HEAD",
    "POST",
    "PUT",
    "OPTIONS",
    "OPTIONS",
  ),
  url: fc
    .tuple(
      fc.constantFrom(...paths),
      fc.constantFrom("", "", "", "", "", "", "?", "?b=1", "?u=1", "?u=1&b=1", "?b=1&u=1"),
    )
    .map((parts) => parts.join("")),
  cookie: fc.constantFrom(
    undefined,
    undefined,
    undefined,
    undefined,
    "sid=1",
    "_ga=1",
    "odd",
    "lang=de; _ga=1",
    "lang=fr",
  ),
  field: fc.constantFrom<Field | undefined>(
    ...Array.from({ length: 20 }, () => undefined),
    ["Cache-Control", "no-cache"],
    ["Cache-Control", "max-age=0"],
    ["Cache-Control", "only-if-cached"],
    ["Cache-Control", "only-if-cached"],
    ["Authorization", "Basic x"],
    ["If-Match", '"a"'],
    ["Via", Array.from({ length: 8 }, () => "1.1 accel-agent").join()],
    ["Accept-Language", "de"],
    ["Range", "bytes=0-0"],
  ),
  body: fc.constantFrom("", "large"),
  /** Of the clock, before the request. */
  restS: fc.constantFrom(0, 0, 0, 0, 0, 0, 31, 101),
});
type Asked = typeof requestOf extends fc.Arbitrary<infer T> ? T : never;

function fieldsOf({ cookie, field, method, body }: Asked): readonly Field[] {
  const fields: Field[] = [["Host", host]];
  if (cookie !== undefined) fields.push(["Cookie", cookie]);
  if (field !== undefined) fields.push(field);
  if (hasBody(method, body)) fields.push(["Content-Length", `${body.length}`]);
  return fields;
}

const hasBody = (method: string, body: string): boolean =>
  body !== "" && (method === "POST" || method === "PUT");

/** What the index of a static site holds, told without the code that serves. */
function fileOf(rawPath: string, index: readonly string[]): FileFact {
  const path = decodePath(rawPath);
  const isThere = (name: string): boolean => files.includes(name) && !name.startsWith(".");
  if (path === undefined) return { kind: "none" };
  if (isThere(path)) return { kind: "file" };
  const folder = path === "" ? "" : path.replace(/\/?$/, "/");
  if (!index.some((name) => isThere(folder + name))) return { kind: "none" };
  return path === folder ? { kind: "file" } : { kind: "directory", path: `/${folder}` };
}

function pageOf(path: string | null): FileFact {
  return { kind: path !== null && files.includes(path) ? "file" : "none" };
}

/** The plan, walked with the facts of the model. */
function planned(
  { cache, skewMs }: Edge,
  state: ReturnType<typeof stateOf>,
  asked: Asked,
): RequestAnswer {
  const fields = fieldsOf(asked);
  const { method, url, body } = asked;
  const site = state.domains[0]?.hosts[0]?.site;
  const target = parseTarget(url);
  if (site === undefined || site === null || target === undefined) throw new Error("no site");
  const compiled = { site, routes: compileSite(site) };
  const rule = compiled.routes.cache(target, { method, fields });
  let facts: RequestFacts = {
    request: { method, url, httpVersion: "1.1", fields, hasBody: hasBody(method, body) },
    target,
    scheme: "http",
    startedWallMs: 0,
    ...nothingKnown,
  };
  for (;;) {
    const step = nextStep(facts);
    if (typeof step !== "string") return step;
    const learn: Readonly<Record<typeof step, () => Partial<RequestFacts>>> = {
      host: () => ({ host: { kind: "served", host: { name: host }, compiled } }),
      verdict: () => ({ verdict: { kind: "allow" } }),
      limit: () => ({ limit: { kind: "within" } }),
      file: () => ({ file: fileOf(target.rawPath, site.index) }),
      "single-page": () => ({ singlePage: pageOf(site.single_page) }),
      "not-found-page": () => ({ notFoundPage: pageOf(site.not_found) }),
      rule: () => ({ rule }),
      stored: () => {
        const key: EntryKey = { domain: host, host, kind: "generated", path: target.rawPath, query: rule.normalizeQuery(target.rawQuery) }; // prettier-ignore
        const told = toldToShare(rule.cookies(fields));
        const hasOwnCookies = told === undefined;
        const selecting = selectingBy((name) => {
          if (name === "x-forwarded-proto") return "http";
          if (name === "accept-encoding") return normalAcceptEncoding(undefined);
          if (name === queryRuleName) return rule.queryRule;
          const isOfCookies = name === "cookie" || name === toldCookiesName;
          return isOfCookies ? (told ?? fieldValue(fields, "cookie")) : fieldValue(fields, name);
        });
        const isAuthorized = fieldValue(fields, "authorization") !== undefined;
        const selector = { selecting, isAuthorized, hasOwnCookies, passesOver: false };
        const { settings } = rule;
        const nowMs = Date.now() + skewMs;
        const request = requestDirectives(fields);
        const selection = selectStored(
          cache.find(key),
          (one) => cache.servable(one),
          selector,
          rule,
        );
        return { stored: { ...selection, request, settings, confirmed: true, nowMs } };
      },
    };
    facts = { ...facts, ...learn[step]() };
  }
}

/** What a visitor sees of an answer. */
function seenOf(answer: RequestAnswer, asked: Asked): string {
  switch (answer.kind) {
    case "refused":
      return `${answer.status}`;
    case "nothing-stored":
      return "504";
    case "redirect":
      return `${answer.status} ${answer.to}`;
    case "redirect-to-https":
      return `308 https://${host}${asked.url.replace(/\?$/, "")}`;
    case "options":
      return `204 ${answer.allow}`;
    case "file":
    case "single-page":
      return "file";
    case "not-found-page":
      return "404";
    case "pass":
      return passSaid[answer.reason];
    case "serve":
    case "serve-stale":
      return "hit";
    case "fetch":
      return `fwd=${answer.fwd}`;
    default:
      return answer.kind;
  }
}

/** The same of what came; of a file also whether the index knew it. */
async function seen(edge: Edge, asked: Asked): Promise<string> {
  const { method, url, body } = asked;
  const headers = Object.fromEntries(fieldsOf(asked));
  const sent = hasBody(method, body) ? { body } : {};
  const { status, headers: got } = await ask(edge, url, { method, headers, ...sent });
  if (got["location"] !== undefined) return `${status} ${got["location"]}`;
  if (got["allow"] !== undefined && status === 204) return `204 ${got["allow"]}`;
  const said = /^accel-agent; (fwd=bypass; detail=cookie|[^;]*)/.exec(
    got["cache-status"] ?? "",
  )?.[1];
  if (said === undefined) return `${status}`;
  return got["x-of"] === "origin" ? said : `file ${said}`;
}

/** What `why` says, as far as it is asked about: of a GET with nothing but cookies. */
async function toldOf(
  edge: Edge,
  state: ReturnType<typeof stateOf>,
  blobsDir: string,
  asked: Asked,
) {
  const entriesOf = (key: EntryKey) =>
    edge.cache.find(key).map((entry) => ({
      ...entry,
      servable: edge.cache.servable(entry),
      softenedS: null,
    }));
  const none = { departures: [], mime: null, clears: [] };
  const index = {
    why: async (keys: readonly EntryKey[]) => ({
      keys: keys.map((key) => ({ key, entries: entriesOf(key), ...none })),
      clearNo: 0,
      anew: null,
    }),
    doubt: () => undefined,
  };
  const nowMs = Date.now() + edge.skewMs;
  const parts = { index, dropsUntil: null, state, blobsDir, nowMs };
  const said = await why(parts, parseUrlArgument(`http://${host}${asked.url}`), asked.cookie);
  return Object(said).a_plain_get;
}

/** What it must say of what came. */
function toldAs(answer: RequestAnswer, came: string): object {
  const [first = "", second = ""] = came.split(" ");
  switch (answer.kind) {
    case "file":
    case "single-page":
      return { serves: "static", cache: second === "hit" ? "hit" : "miss" };
    case "redirect":
    case "redirect-to-https":
      return {
        serves: "redirect",
        text: expect.stringMatching(`^${first} to ${RegExp.escape(second)}[,:]`),
      };
    case "pass":
      return { serves: "generated", cache: "not asked" };
    case "serve":
      return { serves: "generated", cache: "hit" };
    case "fetch":
      // Nobody whose cookies a rule tells apart is like another.
      if (answer.fwd === "vary-miss")
        return {
          cache: expect.stringMatching(/^(?:miss|(?:hit|stale), for requests like the variant)$/),
        };
      return { serves: "generated", cache: answer.fwd === "stale" ? "stale" : "miss" };
    default:
      return { serves: "nothing", text: expect.stringContaining(came) };
  }
}

test("the plan says what a visitor gets, and why says the same", async () => {
  using dir = tempDir();
  const views = storeFiles(dir.path);
  await using origin = await openOrigin((request, response) => {
    response.sendDate = false;
    const says: Readonly<Record<string, Readonly<Record<string, string>>>> = {
      "/x": { "Cache-Control": "max-age=60", ETag: '"x"' },
      "/y": { ETag: '"y"' },
      "/z": { "Cache-Control": "private" },
      "/w": { "Cache-Control": "public, max-age=60", Vary: "Accept-Language" },
    };
    const headers = says[/^[^?]*/.exec(request.url ?? "")?.[0] ?? ""] ?? {};
    const isSame = request.headers["if-none-match"] !== undefined;
    response.writeHead(isSame ? 304 : 200, { "X-Of": "origin", ...headers });
    response.end(isSame ? undefined : "of the origin");
  });
  await using edge = await openEdge({ blobsDir: dir.path });
  let version = 0;
  const met = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(
      sitesOf(origin.url),
      fc.array(requestOf, { minLength: 10, maxLength: 20 }),
      async (site, requests) => {
        edge.cache.clear(() => true);
        edge.skewMs = 0;
        const state = stateOf(++version, site, views);
        edge.publish(state);
        for (const asked of requests) {
          edge.skewMs += asked.restS * 1_000;
          const answer = planned(edge, state, asked);
          const isAskedAbout = asked.method === "GET" && asked.field === undefined;
          const told = isAskedAbout ? await toldOf(edge, state, dir.path, asked) : undefined;
          const came = await seen(edge, asked);
          const isFile = answer.kind === "file" || answer.kind === "single-page";
          expect(isFile ? came.replace(/^file .*/, "file") : came).toBe(seenOf(answer, asked));
          if (told !== undefined) expect(told).toMatchObject(toldAs(answer, came));
          met.set(answer.kind, (met.get(answer.kind) ?? 0) + 1);
        }
      },
    ),
    { numRuns: 150 },
  );
  const kinds = ["refused", "redirect", "redirect-to-https", "options", "file", "single-page", "not-found-page", "pass", "nothing-stored", "serve", "fetch"]; // prettier-ignore
  expect([...met.keys()].toSorted()).toEqual(kinds.toSorted());
}, 120_000);
