// Tags of origins' answers: stored with the answer, kept from visitors, replaced by a 304; too many of them, and nothing is stored.

import { expect, test } from "vitest";
import { exactWord } from "../../../../src/core/patterns/exact-word.ts";
import { ask } from "../edge.ts";
import { openStage, type Handler } from "../stage.ts";

const said = {
  "Cache-Tag": "product-42, a b",
  "Surrogate-Key": "k1 k2",
  xkey: "x1",
  "X-Magento-Tags": "cat_p_1",
};
const tagging =
  (headers: Record<string, string>): Handler =>
  (_q, r) => {
    for (const [name, value] of Object.entries({ "Cache-Control": "max-age=60", ...headers }))
      r.setHeader(name, value);
    r.end("body");
  };
const words = (...tags: readonly string[]) => tags.map(exactWord).join(" ");

test("they are stored with the answer, and no visitor gets them", async () => {
  await using s = await openStage(tagging(said));
  for (const _ of ["a miss", "a hit"]) {
    const { status, headers } = await ask(s.edge, "/a");
    expect(status).toBe(200);
    for (const name of Object.keys(said)) expect(headers).not.toHaveProperty(name.toLowerCase());
  }
  const [entry] = s.edge.cache.entries;
  expect(entry?.tags).toBe(words("product-42", "a b", "k1", "k2", "x1", "cat_p_1"));
  expect(JSON.stringify(entry?.headers)).not.toMatch(/product-42|k1|cat_p_1/);
});

test("no visitor gets them with what is not stored either", async () => {
  await using s = await openStage(tagging({ ...said, "Cache-Control": "private" }));
  const { headers } = await ask(s.edge, "/a");
  for (const name of Object.keys(said)) expect(headers).not.toHaveProperty(name.toLowerCase());
  expect(s.edge.cache.entries).toHaveLength(0);
});

test("a page with five thousand tags is stored; one more, and it is served and not stored", async () => {
  const list = (count: number) => Array.from({ length: count }, (_, no) => `product-${no}`);
  await using s = await openStage((q, r) => {
    tagging({ "Surrogate-Key": list(q.url === "/many" ? 5_000 : 5_001).join(" ") })(q, r, 1);
  });
  expect((await ask(s.edge, "/many")).status).toBe(200);
  expect(s.edge.cache.entries[0]?.tags?.split(" ")).toHaveLength(5_000);
  const { status, text } = await ask(s.edge, "/more");
  expect([status, text]).toEqual([200, "body"]);
  expect(s.edge.cache.entries).toHaveLength(1);
});

test("those of a 304 replace what is stored; without any, they stay", async () => {
  const tags = ["one", undefined, "three"];
  await using s = await openStage((q, r, n) => {
    const isKnown = q.headers["if-none-match"] === '"e"';
    const tag = tags[n - 1];
    const all = {
      "Cache-Control": "max-age=60",
      ETag: '"e"',
      ...(tag !== undefined && { xkey: tag }),
    };
    r.writeHead(isKnown ? 304 : 200, all).end(isKnown ? undefined : "body");
  });
  const stored = () => s.edge.cache.entries[0]?.tags;
  await s.get("/a");
  expect(stored()).toBe("one");
  s.edge.skewMs = 61_000;
  await s.get("/a");
  expect(stored()).toBe("one");
  s.edge.skewMs = 122_000;
  await s.get("/a");
  expect(stored()).toBe("three");
  expect(s.edge.cache.refreshed).toBe(2);
});
