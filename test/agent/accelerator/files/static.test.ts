// Static files, of a manifest and of a host's own directory alike: what is found, with which headers, and what must never be served.

import { describe, expect, it } from "vitest";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { ask, raw, stateOf } from "../edge.ts";
import { files, layDirectory, layManifest, openSite } from "../site-layout.ts";

describe.each([
  ["a manifest", (dir: string) => layManifest(dir, "")],
  ["a manifest below a folder", (dir: string) => layManifest(dir, "www/")],
  ["a directory", layDirectory],
] as const)("static files of %s", (_name, lay) => {
  it("are sent whole, with type, length, validators and lifetime", async () => {
    using dir = tempDir();
    await using edge = await openSite(lay(dir.path), { static: { max_age_s: 60 } });
    const answer = await until("a validator", async () => {
      const found = await ask(edge, "/style.css");
      return found.headers["etag"] === undefined ? undefined : found; // A file just written has none yet.
    });
    expect(answer).toMatchObject({ status: 200, text: "body{}" });
    expect(answer.headers).toMatchObject({
      "content-type": "text/css; charset=utf-8",
      "content-length": "6",
      "accept-ranges": "bytes",
      "cache-control": "public, max-age=60",
      etag: expect.stringMatching(/^"[\w-]+"$/),
      date: expect.stringContaining("GMT"),
    });
    expect(answer.headers["x-powered-by"]).toBeUndefined();
  });

  it.each([
    ["/", 200, "<h1>home</h1>"],
    ["/index.html", 200, "<h1>home</h1>"],
    ["/docs/", 200, "docs"],
    ["/docs/deep/a%20b.txt", 200, "spaced"],
    ["/docs/%C3%BCmlaut.txt", 200, "umlaut"],
    ["/docs/./deep/../index.html?x=1", 200, "docs"],
    ["/.well-known/security.txt", 200, "contact"],
    ["/empty.txt", 200, ""],
    ["/big.txt", 200, files["big.txt"]],
    ["/none", 404, undefined],
    ["/docs/deep/", 404, undefined],
    ["/index.html/", 404, undefined],
    ["/.secret", 404, undefined],
    ["/docs/.git/config", 404, undefined],
    ["//style.css", 404, undefined],
    ["/docs//index.html", 404, undefined],
    ["/style.css%00", 404, undefined],
    ["/docs%2findex.html", 404, undefined],
    ["/%E0%A4%A", 404, undefined],
    [`/${"a".repeat(5_000)}`, 404, undefined],
  ])("GET %s: %d", async (path, status, text) => {
    using dir = tempDir();
    await using edge = await openSite(lay(dir.path));
    const answer = await ask(edge, path);
    expect(answer.status).toBe(status);
    if (text !== undefined) expect(answer.text).toBe(text);
  });

  it.each([
    "/../../etc/passwd",
    "/..%2f..%2fetc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/docs/../../../etc/passwd",
    "/..\\..\\etc\\passwd",
    "/./../etc/passwd",
  ])("never leave the root: %s", async (path) => {
    using dir = tempDir();
    await using edge = await openSite(lay(dir.path));
    const answer = await raw(
      edge,
      `GET ${path} HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 404 /);
    expect(answer).not.toContain("root:");
  });

  it.each([
    ["/docs", "/docs/"],
    ["/docs?a=b", "/docs/?a=b"],
    ["/x/../docs", "/docs/"],
    ["/%64ocs", "/docs/"],
  ])("a directory redirects to its slash: %s", async (path, location) => {
    using dir = tempDir();
    await using edge = await openSite(lay(dir.path));
    expect(await ask(edge, path)).toMatchObject({ status: 301, headers: { location } });
  });

  it("never redirect to another host", async () => {
    using dir = tempDir();
    await using edge = await openSite(lay(dir.path));
    for (const path of ["//docs", "//evil.example/../docs", "/\\evil.example/../docs"]) {
      const { status, headers } = await ask(edge, path);
      if (status === 301) expect(headers["location"]).toMatch(/^\/[^/\\]/);
    }
  });

  it("answer conditions and ranges", async () => {
    using dir = tempDir();
    await using edge = await openSite(lay(dir.path));
    const etag = await until(
      "a validator",
      async () => (await ask(edge, "/data.bin")).headers["etag"],
    );
    const get = (headers: Record<string, string>) => ask(edge, "/data.bin", { headers });
    expect(await get({ "if-none-match": etag })).toMatchObject({ status: 304, text: "" });
    expect(await get({ "if-none-match": '"other"' })).toMatchObject({ status: 200 });
    expect(await get({ "if-match": '"other"' })).toMatchObject({ status: 412 });
    expect(await get({ range: "bytes=2-4" })).toMatchObject({
      status: 206,
      text: "234",
      headers: { "content-range": "bytes 2-4/10", "content-length": "3" },
    });
    expect(await get({ range: "bytes=-3" })).toMatchObject({ status: 206, text: "789" });
    expect(await get({ range: "bytes=10-" })).toMatchObject({
      status: 416,
      headers: { "content-range": "bytes */10" },
    });
    expect(await get({ range: "bytes=0-1,4-5" })).toMatchObject({ status: 200 });
    expect(await get({ range: "bytes=0-1", "if-range": etag })).toMatchObject({ status: 206 });
    expect(await get({ range: "bytes=0-1", "if-range": '"x"' })).toMatchObject({ status: 200 });
    const big = await ask(edge, "/big.txt", { headers: { range: "bytes=100000-299999" } });
    expect([big.status, big.body.length]).toEqual([206, 200_000]);
  });

  it("are known to the index from when they are sent, and not when they are refused", async () => {
    using dir = tempDir();
    await using edge = await openSite(lay(dir.path));
    const headers = { range: "bytes=100-" };
    expect((await ask(edge, "/style.css", { headers })).status).toBe(416);
    expect(edge.cache.entries).toEqual([]);
    expect((await ask(edge, "/style.css")).status).toBe(200);
    expect(edge.cache.entries.length).toBe(1);
  });

  it("HEAD is GET without the body", async () => {
    using dir = tempDir();
    await using edge = await openSite(lay(dir.path));
    const head = await ask(edge, "/data.bin", { method: "HEAD" });
    expect(head).toMatchObject({ status: 200, text: "", headers: { "content-length": "10" } });
  });

  it.each([
    ["POST", "/style.css", 405, "GET, HEAD, OPTIONS"],
    ["DELETE", "/docs", 405, "GET, HEAD, OPTIONS"],
    ["OPTIONS", "/style.css", 204, "GET, HEAD, OPTIONS"],
    ["POST", "/none", 404, undefined],
  ])("%s %s: %d", async (method, path, status, allow) => {
    using dir = tempDir();
    await using edge = await openSite(lay(dir.path));
    const answer = await ask(edge, path, { method, body: "x" });
    expect([answer.status, answer.headers["allow"]]).toEqual([status, allow]);
  });

  it("are entries once served: miss, hit, and a miss again when cleared", async () => {
    using dir = tempDir();
    await using edge = await openSite(lay(dir.path));
    const status = async (): Promise<string | undefined> =>
      (await ask(edge, "/docs/")).headers["cache-status"];
    expect(await status()).toBe("accel-agent; fwd=miss");
    expect(await status()).toBe("accel-agent; hit");
    expect(edge.cache.entries).toMatchObject([
      {
        kind: "static",
        path: "docs/index.html",
        mime: "text/html",
        query: "",
        size: 4,
        domain: "www.example.com",
      },
    ]);
    edge.cache.clear(({ path }) => path === "docs/index.html");
    expect(await status()).toBe("accel-agent; fwd=miss");
    expect(await status()).toBe("accel-agent; hit");
    await until("records", () => edge.records.length === 4);
    expect(edge.records.map(({ cache }) => cache)).toEqual(["miss", "hit", "miss", "hit"]);
  });

  it("have a page for what is not there, or one page for everything", async () => {
    using dir = tempDir();
    const lying = lay(dir.path);
    await using edge = await openSite(lying, { not_found: "404.html" });
    const answer = await ask(edge, "/none");
    expect(answer).toMatchObject({
      status: 404,
      text: "not here",
      headers: { "content-type": "text/html; charset=utf-8" },
    });
    edge.publish(stateOf(2, { single_page: "/index.html", not_found: "404.html" }, lying.views));
    expect(await ask(edge, "/any/where?x")).toMatchObject({ status: 200, text: "<h1>home</h1>" });
    expect(await ask(edge, "/any/where", { method: "POST" })).toMatchObject({ status: 404 });
  });

  it("have the site's headers and redirects", async () => {
    using dir = tempDir();
    await using edge = await openSite(lay(dir.path), {
      headers: {
        set: { "X-Frame-Options": "DENY", "cache-control": "no-cache" },
        remove: ["ETag"],
      },
      redirects: [{ from: "/old/**", to: "/docs/", status: 308 }],
    });
    const { headers } = await ask(edge, "/style.css");
    expect(headers).toMatchObject({ "x-frame-options": "DENY", "cache-control": "no-cache" });
    expect(headers["etag"]).toBeUndefined();
    expect(await ask(edge, "/old/thing?q=1", { method: "POST" })).toMatchObject({
      status: 308,
      headers: { location: "/docs/", "x-frame-options": "DENY" },
    });
  });
});
