// What a site and its rules say of headers, on answers that go on to the visitor as they come: whatever their status, over the lane, over node:http and over HTTP/2.

import { once } from "node:events";
import { describe, expect, it } from "vitest";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { host, raw } from "../edge.ts";
import { visitByHttp2 } from "../secure-clients.ts";
import { openSecureStage } from "../secure-stage.ts";
import type { Handler } from "../stage.ts";
import { visited, ways, type VisitAsked, type Visited } from "../visited.ts";

type Rule = NonNullable<NonNullable<SiteInput["cache"]>["rules"]>[number];

/** The path says what is answered: the status, and the subtype of an image. */
const answering: Handler = (q, r) => {
  const [, status = "", type = ""] = /^\/\w+\/(\d+)\/(\w+)/.exec(q.url ?? "") ?? [];
  r.setHeader("Content-Type", `image/${type}`).setHeader("Cache-Control", "no-store");
  r.setHeader("ETag", '"1"').setHeader("X-Debug", "1").setHeader("X-Frame", "origin");
  r.writeHead(Number(status)).end(["204", "304"].includes(status) ? "" : "body");
};

const images: Rule = {
  path: "/**",
  match: { media_type: ["image/png"] },
  headers: {
    response: { set: { "X-Frame": "png", "Content-Type": "image/x-own" }, remove: ["X-Debug"] },
  },
};
const rest = { headers: { response: { set: { "X-Frame": "rest" } } } };
const passing: Rule = { path: "/pass/**", bypass: true, ...rest };

const statuses = [200, 204, 206, 301, 304, 403, 404, 500, 503];
const hasNoType = (status: number): boolean => status === 304;

async function said(s: Visited, path: string, asked: VisitAsked = {}): Promise<string> {
  const { status, headers } = await s.visit(path, { cookie: [], ...asked });
  const names = ["x-frame", "x-debug", "content-type"];
  return [status, ...names.map((name) => JSON.stringify(headers[name])?.slice(1, -1) ?? "-")].join(" ");
} // prettier-ignore

describe.each(ways)("over %s", (way) => {
  it.each(statuses)("an answer with %i has the headers of the rule of its type", async (status) => {
    await using s = await visited(way, answering, {});
    s.publish({ rules: [images, passing], default: rest });
    const etag = { "if-none-match": '"1"' };
    const png = `${status} png - ${hasNoType(status) ? "-" : "image/x-own"}`;
    const gif = `${status} rest 1 image/gif`;
    const asks: readonly VisitAsked[] = [{}, { method: "HEAD" }, { method: "POST" }];
    for (const asked of asks) {
      const conditional = { ...asked, headers: status === 304 ? etag : {} };
      expect(await said(s, `/pass/${status}/png`, conditional)).toBe(png);
      expect(await said(s, `/pass/${status}/gif`, conditional)).toBe(gif);
      // What may be stored is asked for without the visitor's conditions.
      if (status === 304 && asked.method !== "POST") continue;
      expect(await said(s, `/own/${status}/png`, conditional)).toBe(png);
      expect(await said(s, `/own/${status}/gif`, conditional)).toBe(gif);
    }
  });

  it("who has what was fetched is told so with the headers of a 304", async () => {
    await using s = await visited(way, answering, {});
    s.publish({ rules: [images], default: rest });
    const asked = { headers: { "if-none-match": '"1"' } };
    expect(await said(s, "/own/200/png", asked)).toBe("304 png - -");
    expect(await said(s, "/own/200/gif", asked)).toBe("304 rest 1 -");
  });

  it("the lane hands on the rule that it found, with what its headers chose and its types", async () => {
    await using s = await visited(way, (q, r, n) => {
      const { "x-app": told = "-" } = q.headers;
      r.setHeader("Content-Type", q.url === "/png" ? "image/png" : "text/html").setHeader("X-Debug", "1");
      r.end(`v${n} ${String(told)}`);
    }, {}); // prettier-ignore
    const match = { header: { "X-App": "2.*" } };
    const named = (name: string) => ({ response: { set: { "X-Frame": name } } });
    s.publish({
      rules: [
        { path: "/**", match: { ...match, media_type: ["image/*"] }, ttl_s: 60, headers: named("app-png") },
        { path: "/**", match: { media_type: ["image/*"] }, ttl_s: 50, headers: named("png") },
        { path: "/**", match, ttl_s: 40, headers: named("app") },
      ],
      default: { ttl_s: 30, headers: named("rest") },
    }); // prettier-ignore
    const app = { headers: { "x-app": "2.1" } };
    const got = async (path: string, asked: VisitAsked): Promise<string> => {
      const { text, headers } = await s.visit(path, { cookie: [], ...asked });
      const how = /hit; ttl=\d+|fwd=[\w-]+; stored/.exec(String(headers["cache-status"]))?.[0];
      return [text, headers["x-frame"], how].join(" ");
    };
    expect(await got("/png", app)).toBe("v1 2.1 app-png fwd=uri-miss; stored");
    expect(await got("/png", {})).toBe("v2 - png fwd=vary-miss; stored");
    expect(await got("/html", {})).toBe("v3 - rest fwd=uri-miss; stored");
    expect(await got("/html", app)).toBe("v4 2.1 app fwd=vary-miss; stored");
    expect(s.edge.quick).toEqual(way === "node:http" ? { answer: 0, pass: 0 } : { answer: 0, pass: 4 }); // prettier-ignore
    for (let n = 0; n < 3; n++) {
      expect(await got("/png", app)).toBe("v1 2.1 app-png hit; ttl=60");
      expect(await got("/png", {})).toBe("v2 - png hit; ttl=50");
      expect(await got("/html", {})).toBe("v3 - rest hit; ttl=30");
      expect(await got("/html", app)).toBe("v4 2.1 app hit; ttl=40");
    }
  });
});

/** Interim answers are read as they come: by a socket, or of a stream. */
describe.each(["GET", "DELETE"])("a hint before the answer to %s", (method) => {
  const hinted: Handler = (_q, r) => {
    r.writeEarlyHints({ link: "</a.css>", "x-site": "1", "x-png": "1", "x-rest": "1", "x-kept": "1" });
    r.setHeader("Content-Type", "text/html").end("ok");
  }; // prettier-ignore
  const removes = (name: string) => ({ headers: { response: { remove: [name] } } });
  const site: SiteInput = {
    headers: { remove: ["X-Site"] },
    cache: {
      rules: [{ path: "/**", match: { media_type: ["image/png"] }, ...removes("X-Png") }],
      default: removes("X-Rest"),
    },
  };

  it("has nothing of what the site or a rule of any type removes, over HTTP/1.1", async () => {
    await using s = await openSecureStage(hinted, { site });
    const head = `${method} /p HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    const [early] = (await raw(s.edge, head)).split("\r\n\r\n");
    expect(early?.split("\r\n").map((line) => line.toLowerCase())).toEqual([
      "http/1.1 103 early hints",
      "link: </a.css>",
      "x-kept: 1",
    ]);
    // The lane reads GET, node:http the other.
    expect(s.edge.quick.pass).toBe(method === "GET" ? 1 : 0);
  });

  it("nor over HTTP/2", async () => {
    await using s = await openSecureStage(hinted, { site });
    await using visitor = await visitByHttp2(s.port);
    const stream = visitor.begin({ ":path": "/p", ":method": method });
    const hints: string[][] = [];
    stream.on("headers", (early) => hints.push(Object.keys(early)));
    await once(stream, "response");
    expect(hints.map((names) => names.filter((name) => !name.startsWith(":")))).toEqual([
      ["link", "x-kept"],
    ]);
  });
});
