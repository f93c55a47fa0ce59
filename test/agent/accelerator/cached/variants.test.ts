// Compressed variants as visitors see them: who gets which, with which head, and what a clear does to them.

import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { ask, openEdge, openOrigin, stateOf, type Answer, type Edge } from "../edge.ts";

const text = "All work and no play makes Jack a dull boy.\n".repeat(200);
const decoders = { br: brotliDecompressSync, zstd: zstdDecompressSync, gzip: gunzipSync } as const;
const page = "/page.html";

type Head = Readonly<Record<string, string>>;

const visit = (edge: Edge, headers: Head = {}, method = "GET"): Promise<Answer> =>
  ask(edge, page, { headers, method });

/** When the variant is there; the answers until then were the response as it is. */
async function coded(edge: Edge, accept: string): Promise<Answer> {
  return until(`a variant for ${accept}`, async () => {
    const answer = await visit(edge, { "accept-encoding": accept });
    expect(answer.status).toBe(200);
    if (answer.headers["content-encoding"] !== undefined) return answer;
    expect(answer.text).toBe(text);
    return undefined;
  });
}

async function openFiles(dir: string, site: SiteInput = {}): Promise<Edge> {
  mkdirSync(join(dir, "site"));
  const path = join(dir, "site", "page.html");
  writeFileSync(path, text);
  writeFileSync(join(dir, "site", "data.png"), text);
  utimesSync(path, 1_700_000_000, 1_700_000_000);
  const edge = await openEdge({ site, views: { kind: "directory", root: join(dir, "site") } });
  await until("a validator", async () => (await visit(edge)).headers["etag"]);
  return edge;
}

const varies = (answer: Answer): string => answer.headers["vary"]?.toLowerCase() ?? "";

describe("a static file", () => {
  it.each([
    ["br", "gzip, deflate, br, zstd"],
    ["zstd", "zstd, gzip"],
    ["gzip", "gzip"],
    ["gzip", "br;q=0.1, gzip"],
  ] as const)("is sent as %s to who says %s, once that is made", async (coding, accept) => {
    using dir = tempDir();
    await using edge = await openFiles(dir.path);
    const plain = await visit(edge);
    const answer = await coded(edge, accept);
    expect(answer.headers).toMatchObject({
      "content-encoding": coding,
      "content-type": "text/html; charset=utf-8",
      "content-length": `${answer.body.length}`,
      etag: plain.headers["etag"]?.replace(/"$/, `-${coding}"`),
      "last-modified": plain.headers["last-modified"],
      "cache-status": "accel-agent; hit",
    });
    expect(answer.body.length).toBeLessThan(text.length / 2);
    expect(decoders[coding](answer.body).toString()).toBe(text);
    expect(plain.headers["content-encoding"]).toBeUndefined();
    for (const one of [plain, answer]) expect(varies(one)).toBe("accept-encoding");
    const head = await visit(edge, { "accept-encoding": accept }, "HEAD");
    expect({ ...head.headers, date: "" }).toEqual({ ...answer.headers, date: "" });
    expect((await visit(edge, { "accept-encoding": "identity" })).text).toBe(text);
    expect((await visit(edge, { "accept-encoding": "gzip;q=0, br;q=0" })).text).toBe(text);
  });

  it("is not changed under the same tag: conditions know all forms that the visitor takes", async () => {
    using dir = tempDir();
    await using edge = await openFiles(dir.path);
    const plain = (await visit(edge)).headers["etag"] ?? "";
    const br = (await coded(edge, "br")).headers["etag"] ?? "";
    const when = (tag: string, accept: string, name = "if-none-match"): Promise<Answer> =>
      visit(edge, { [name]: tag, "accept-encoding": accept });
    const same = await when(br, "br");
    expect([same.status, same.headers["etag"], same.text]).toEqual([304, br, ""]);
    expect(varies(same)).toBe("accept-encoding");
    expect(same.headers["content-encoding"]).toBeUndefined();
    const older = await when(plain, "br");
    expect([older.status, older.headers["etag"]]).toEqual([304, plain]);
    expect((await when(br, "gzip")).status).toBe(200);
    expect((await when(br, "br", "if-match")).status).toBe(200);
    expect((await when('"other"', "br", "if-match")).status).toBe(412);
  });

  it("is cut into parts as it is, never coded", async () => {
    using dir = tempDir();
    await using edge = await openFiles(dir.path);
    const { headers } = await coded(edge, "br");
    const part = await visit(edge, { range: "bytes=0-9", "accept-encoding": "br" });
    expect(part).toMatchObject({ status: 206, text: text.slice(0, 10) });
    expect(part.headers["content-encoding"]).toBeUndefined();
    expect(varies(part)).toBe("accept-encoding");
    const rest = { range: "bytes=10-", "if-range": headers["etag"] ?? "", "accept-encoding": "br" };
    expect(await visit(edge, rest)).toMatchObject({ status: 200, text });
  });

  it("takes its variants along when it is cleared or changes", async () => {
    using dir = tempDir();
    await using edge = await openFiles(dir.path);
    await coded(edge, "br");
    edge.cache.clear(({ kind }) => kind === "static");
    const cleared = await visit(edge, { "accept-encoding": "br" });
    expect(cleared).toMatchObject({ status: 200, text });
    expect(cleared.headers["cache-status"]).toBe("accel-agent; fwd=miss");
    await coded(edge, "br");
    writeFileSync(join(dir.path, "site", "page.html"), `${text}more`);
    const changed = await visit(edge, { "accept-encoding": "br" });
    expect(changed.text).toBe(`${text}more`);
  });

  it("is sent as it is when the variant is cleared or lost between choice and head", async () => {
    using dir = tempDir();
    await using edge = await openFiles(dir.path);
    await coded(edge, "br");
    edge.cache.whileOpening = () => edge.cache.clear(() => true);
    const answer = await visit(edge, { "accept-encoding": "br" });
    expect(answer.text).toBe(text);
    expect(answer.headers["cache-status"]).toBe("accel-agent; fwd=miss");
    edge.cache.whileOpening = () => {};
    await coded(edge, "br");
    edge.cache.whileOpening = () => {
      for (const [id, { entry }] of edge.cache.rows)
        if (entry.form !== null) edge.cache.rows.delete(id);
    };
    expect(await visit(edge, { "accept-encoding": "br" })).toMatchObject({ status: 200, text });
  });

  it.each([
    ["compression is off", { compression: false }, page],
    ["the site says no-transform", { headers: { set: { "Cache-Control": "no-transform" } } }, page],
    ["it is no text", {}, "/data.png"],
  ] as const)("has no variants where %s", async (_name, site, path) => {
    using dir = tempDir();
    await using edge = await openFiles(dir.path, site);
    const get = (): Promise<Answer> => ask(edge, path, { headers: { "accept-encoding": "br" } });
    await until("a hit", async () => (await get()).headers["cache-status"]?.endsWith("hit"));
    expect((await get()).headers["vary"]).toBeUndefined();
    edge.publish(stateOf(2, {}, { kind: "directory", root: join(dir.path, "site") }));
    await coded(edge, "br"); // By now one would have been made.
    expect(edge.cache.entries.filter(({ form }) => form !== null)).toMatchObject([
      { path: "page.html" },
    ]);
  });

  it("counts what its variants save", async () => {
    using dir = tempDir();
    await using edge = await openFiles(dir.path);
    const { body } = await coded(edge, "br");
    const metrics = await edge.registry.metrics();
    const domain = 'domain="www.example.com"';
    expect(metrics).toContain('variants_total{coding="br",outcome="made"} 1');
    expect(metrics).toContain(`variants_served_total{${domain},coding="br"} 1`);
    expect(metrics).toContain(`bytes_saved_total{${domain}} ${text.length - body.length}`);
  });
});

describe("a generated response", () => {
  async function openSite(head: Head, site: SiteInput = {}): Promise<Edge & { asked: number }> {
    let asked = 0;
    const origin = await openOrigin((request, response) => {
      asked++;
      if (request.headers["if-none-match"] === '"v1"') response.writeHead(304, head);
      else
        response.writeHead(200, {
          "content-type": "text/html",
          "content-length": text.length,
          "cache-control": "max-age=60",
          etag: '"v1"',
          ...head,
        });
      response.end(response.statusCode === 200 ? text : undefined);
    });
    const edge = await openEdge({ site: { ...site, backend: { urls: [origin.url] } } });
    return Object.assign(edge, {
      get asked() {
        return asked;
      },
      [Symbol.asyncDispose]: async () => {
        await Object.getPrototypeOf(edge)[Symbol.asyncDispose].call(edge);
        await origin[Symbol.asyncDispose]();
      },
    });
  }

  it.each(["br", "zstd", "gzip"] as const)("has a variant for %s", async (coding) => {
    await using edge = await openSite({ "repr-digest": "sha-256=:x:", vary: "Cookie" });
    const first = await visit(edge, { "accept-encoding": coding });
    expect(first.text).toBe(text);
    const answer = await coded(edge, coding);
    expect(answer.headers).toMatchObject({
      "content-encoding": coding,
      "content-length": `${answer.body.length}`,
      etag: `"v1-${coding}"`,
      vary: "Cookie, Accept-Encoding",
      "cache-status": expect.stringContaining("accel-agent; hit"),
    });
    expect(answer.headers["repr-digest"]).toBeUndefined();
    expect(decoders[coding](answer.body).toString()).toBe(text);
    const plain = await visit(edge);
    expect(plain).toMatchObject({ text, headers: { etag: '"v1"', "repr-digest": "sha-256=:x:" } });
    for (const one of [first, plain]) expect(varies(one)).toBe("cookie, accept-encoding");
    const same = await visit(edge, {
      "if-none-match": `"v1-${coding}"`,
      "accept-encoding": coding,
    });
    expect(same).toMatchObject({ status: 304, text: "", headers: { etag: `"v1-${coding}"` } });
    const wish = { "cache-control": "no-transform", "accept-encoding": coding };
    expect((await visit(edge, wish)).headers["content-encoding"]).toBeUndefined();
    const part = await visit(edge, { range: "bytes=0-9", "accept-encoding": coding });
    expect(part).toMatchObject({ status: 206, text: text.slice(0, 10) });
  });

  it("is confirmed by its origin under the origin's tag, and keeps its variants", async () => {
    await using edge = await openSite({ "cache-control": "max-age=10" });
    await coded(edge, "br");
    edge.skewMs = 20_000;
    const conditions = { "if-none-match": '"v1-br"', "accept-encoding": "br" };
    const confirmed = await visit(edge, conditions);
    expect(confirmed).toMatchObject({ status: 304, headers: { etag: '"v1-br"' } });
    expect(confirmed.headers["cache-status"]).toContain("fwd-status=304");
    const after = await visit(edge, { "accept-encoding": "br" });
    expect(after.headers["content-encoding"]).toBe("br");
  });

  it("that is fetched anew is known by the tag of a variant", async () => {
    await using edge = await openSite({});
    await coded(edge, "br");
    edge.cache.clear(() => true);
    const conditions = { "if-none-match": '"v1-br"', "accept-encoding": "br" };
    const answer = await visit(edge, conditions);
    expect(answer).toMatchObject({ status: 304, text: "", headers: { etag: '"v1-br"' } });
  });

  it("keeps a weak tag, which speaks of the meaning", async () => {
    await using edge = await openSite({ etag: 'W/"v1"' });
    const { headers } = await coded(edge, "br");
    expect(headers["etag"]).toBe('W/"v1"');
    const conditions = { "if-none-match": 'W/"v1"', "accept-encoding": "br" };
    expect((await visit(edge, conditions)).status).toBe(304);
  });

  it.each([
    ["its origin forbids it", { "cache-control": "max-age=60, no-transform" }, {}],
    ["its origin has coded it", { "content-encoding": "deflate" }, {}],
    ["it is no text", { "content-type": "image/png" }, {}],
    ["compression is off", {}, { compression: false }],
  ] as const)("has no variants where %s", async (_name, head, site) => {
    await using edge = await openSite(head, site);
    for (let n = 0; n < 3; n++) {
      const answer = await visit(edge, { "accept-encoding": "br" });
      expect(answer.text).toBe(text);
      expect(varies(answer)).toBe("");
    }
    const metrics = await edge.registry.metrics();
    expect(metrics).not.toContain("variants_total{");
    expect(edge.cache.entries.length).toBe(1);
  });

  it("has none that comes from before a clear", async () => {
    await using edge = await openSite({});
    await visit(edge);
    edge.cache.whileOpening = () => edge.cache.clear(() => true);
    await visit(edge, { "accept-encoding": "br" }, "HEAD"); // Reads no body: what is opened is the variant's source.
    await until("the attempt", async () =>
      /variants_total\{coding="br",outcome="blocked"\} 1/.test(await edge.registry.metrics()),
    );
    expect(edge.cache.entries).toEqual([]);
    edge.cache.whileOpening = () => {};
    const answer = await visit(edge, { "accept-encoding": "br" });
    expect(answer.headers["content-encoding"]).toBeUndefined();
    expect(answer.headers["cache-status"]).toContain("fwd=");
  });
});
