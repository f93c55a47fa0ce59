// What one visitor sends must not get into the page that others are served, nor his page into the cache under a rule for other paths.

import { describe, expect, it } from "vitest";
import { ask } from "../edge.ts";
import { openStage, type Handler } from "../stage.ts";

/** A page that says all it was asked with, and nothing of how long it lasts. */
const echo: Handler = (request, response) => {
  response.writeHead(200, { "Content-Type": "text/plain" });
  response.end(`${request.method} ${request.url} ${JSON.stringify(request.rawHeaders)}`);
};
const evil = { headers: { "x-own": "EVIL" } };

describe("fields that frameworks obey", () => {
  const names = [
    "Front-End-Https", "Proxy", "True-Client-IP", "X-Forwarded-Path", "X-Forwarded-Protocol", "X-Forwarded-Scheme", "X-Forwarded-Ssl",
    "X-HTTP-Method", "X-HTTP-Method-Override", "X-Host", "X-Method-Override", "X-Middleware-Subrequest", "X-Original-Host", "X-Original-URL",
    "X-Rewrite-URL", "X-Url-Scheme", "X_Forwarded_For", "X_Forwarded_Host", "X_Forwarded_Proto", "Any_Name",
  ]; // prettier-ignore
  const headers = Object.fromEntries(names.map((name) => [name, "EVIL"]));
  /** Those of the origin's request that are among them. */
  const seen = (text: string): readonly string[] => names.filter((name) => text.includes(name));
  const always = ["Proxy", "X_Forwarded_For", "X_Forwarded_Host", "X_Forwarded_Proto", "Any_Name"];

  it("are kept from an answer that others may get", async () => {
    await using s = await openStage(echo, { default: { ttl_s: 60 } });
    const { text } = await ask(s.edge, "/", { headers: { ...headers, "X-Own": "1" } });
    expect(seen(text)).toEqual([]);
    expect(text).toContain("X-Own");
    expect(await s.get("/")).toMatch(/hit$/);
    await ask(s.edge, "/head", { method: "HEAD", headers });
    expect(seen(String(s.seen.at(-1)?.rawHeaders))).toEqual([]);
  });

  it.each([
    ["POST", "/"],
    ["GET", "/own"],
  ])(
    "but those in `_` and Proxy reach the origin where nothing is stored: %s %s",
    async (method, path) => {
      await using s = await openStage(echo, { rules: [{ path: "/own", bypass: true }] });
      const { text } = await ask(s.edge, path, { method, headers });
      expect(seen(text)).toEqual(names.filter((name) => !always.includes(name)));
    },
  );
});

it("a path that an application may read as one of a bypass rule is not stored", async () => {
  const rules = [{ path: "/cart/**", bypass: true }];
  await using s = await openStage(echo, { rules, default: { ttl_s: 60 } });
  for (const path of ["/cart%2f1", "/x/..%2fcart/1", "/cart%5c1", "/cart;x/1"]) {
    await s.get(path, evil);
    expect(await s.get(path)).toMatch(/fwd=bypass$/);
    expect(await s.get(path)).not.toContain("EVIL");
  }
});

it("nor is one that it may read as none of the rule that lets it be stored", async () => {
  await using s = await openStage(echo, { rules: [{ path: "/static/**", ttl_s: 60 }] });
  await s.get("/static/a%20b", evil);
  expect(await s.get("/static/a%20b")).toMatch(/EVIL.*hit$/);
  for (const path of [
    "/static/..%2faccount",
    "/static/..;/account",
    "/static/%252e%252e/account",
  ]) {
    await s.get(path, evil);
    expect(await s.get(path)).not.toContain("EVIL");
  }
});

it("such a path keeps what the origin itself says of it", async () => {
  await using s = await openStage((_q, response, n) => {
    response.writeHead(200, { "Cache-Control": "max-age=60" });
    response.end(`v${n}`);
  });
  await s.get("/a/..%2fb");
  expect(await s.get("/a/..%2fb")).toBe("200 v1 hit");
});

it.each([
  [{ ignore: ["utm_*"] }, "/s?q=shoes&utm_source=x;q=EVIL", "/s?q=shoes"],
  [{ keep: ["q"] }, "/s?x=1;q=EVIL", "/s"],
  [{ keep: ["user_id"] }, "/s?user.id=EVIL", "/s"],
  [{ keep: ["q"] }, "/s?q[]=EVIL", "/s"],
])("under %j the page of %s is not that of %s", async (query, cloaked, clean) => {
  await using s = await openStage(echo, { default: { ttl_s: 60, query } });
  await s.get(cloaked);
  expect(await s.get(clean)).not.toContain("EVIL");
});
