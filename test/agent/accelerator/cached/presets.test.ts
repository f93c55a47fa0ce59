// A shop behind a preset, as its visitors meet it: over the lane, over node:http and over HTTP/2.

import { describe, expect, it } from "vitest";
import type { Handler } from "../stage.ts";
import { visited, ways } from "../visited.ts";

/** Greets who is logged in by name, and has no word of caching. */
const shop: Handler = (q, r, n) => {
  const name = /wordpress_logged_in_\w+=(\w+)/.exec(q.headers.cookie ?? "")?.[1];
  r.end(`v${n} ${name ?? "-"}`);
};
const marketing = "_ga=GA1.2.3; cookieyes-consent=yes; some_marketing_thing=1";

describe.each(ways)("over %s", (way) => {
  it("those who are not known share pages, and everybody else is passed on", async () => {
    await using s = await visited(way, shop, {});
    s.publish({ presets: [{ name: "woocommerce" }] });
    expect(await s.get(marketing, {}, "/product/")).toBe("200 v1 - fwd=uri-miss; stored");
    expect(s.told).toEqual([undefined]);
    const passed = [
      [`${marketing}; wordpress_logged_in_0a=ann`, "/product/", "fwd=bypass; detail=cookie"],
      ["woocommerce_items_in_cart=1", "/product/", "fwd=bypass; detail=cookie"],
      [marketing, "/cart/", "fwd=bypass"],
      [marketing, "/product/?add-to-cart=7", "fwd=bypass"],
      [marketing, "/product/?%77c-ajax=x", "fwd=bypass"],
      [marketing, "/wp-admin/", "fwd=bypass"],
    ] as const;
    let n = 1;
    for (const [cookie, path, said] of passed) {
      const name = cookie.includes("ann") ? "ann" : "-";
      expect(await s.get(cookie, {}, path)).toBe(`200 v${++n} ${name} ${said}`);
    }
    for (let visit = 0; visit < 3; visit++)
      expect(await s.get(`${marketing}; other${visit}=${visit}`, {}, "/product/?utm_source=a")).toBe("200 v1 - hit");
    expect(s.edge.cache.entries.length).toBe(1);
  }); // prettier-ignore

  it("a visitor with cookies of marketing is a hit in one step", async () => {
    await using s = await visited(way, shop, {});
    s.publish({ presets: [{ name: "wordpress" }] });
    for (let n = 0; n < 2; n++) await s.get(marketing);
    const before = s.edge.quick.answer;
    expect(await s.get(`${marketing}; and_another=1`)).toBe("200 v1 - hit");
    expect(s.edge.quick.answer - before).toBe(way === "node:http" ? 0 : 1);
  });

  it("a page that opens a session is stored for nobody", async () => {
    await using s = await visited(way, (_q, r, n) => {
      r.writeHead(200, { "Set-Cookie": "PHPSESSID=a" }).end(`v${n}`);
    }, {}); // prettier-ignore
    s.publish({ presets: [{ name: "wordpress" }] });
    for (const n of [1, 2])
      expect(await s.get(marketing)).toBe(`200 v${n} fwd=uri-miss; detail=set-cookie`);
  });
});
