// Cloudflare's call: its bodies, its answers.

import { expect, test } from "vitest";
import {
  cloudflareAnswer,
  isCloudflarePurge,
  readCloudflarePurge,
} from "../../../src/core/purge/cloudflare-purge.ts";

test.each([
  [{ purge_everything: true }, { everything: true }],
  [{ files: ["https://www.example.com/a"] }, { urls: ["https://www.example.com/a"] }],
  [
    { files: [{ url: "https://www.example.com/a", headers: { "CF-IPCountry": "US" } }] },
    { urls: ["https://www.example.com/a"] },
  ],
  [{ tags: ["a", "b", "a"] }, { tags: ["a", "b"] }],
  [{ hosts: ["www.example.com"] }, { hosts: ["www.example.com"] }],
  [{ prefixes: ["www.example.com/foo"] }, { prefixes: ["https://www.example.com/foo"] }],
])("%j", (body, items) => {
  const read = readCloudflarePurge(JSON.stringify(body));
  expect(read).toEqual({ kind: "items", dialect: "cloudflare", items });
});

test.each([
  ["", /JSON/],
  ["[]", /one of/],
  ["{}", /one of/],
  ['{"files": ["/a"], "tags": ["b"]}', /one of/],
  ['{"purge_everything": false}', /true/],
  ['{"files": []}', /not empty/],
  ['{"files": [1]}', /list of texts/],
  ['{"tags": "a"}', /list of texts/],
  [JSON.stringify({ tags: Array.from({ length: 1_001 }, (_, at) => `${at}`) }), /at most 1000/],
])("refuses %j", (body, message) => {
  expect(readCloudflarePurge(body)).toMatchObject({
    kind: "refused",
    message: expect.stringMatching(message),
  });
});

test("the path names a zone of any form", () => {
  const zone = "0123456789abcdef0123456789abcdef";
  expect(isCloudflarePurge("POST", `/client/v4/zones/${zone}/purge_cache`)).toBe(true);
  expect(isCloudflarePurge("POST", "/client/v4/zones/www.example.com/purge_cache")).toBe(true);
  expect(isCloudflarePurge("GET", `/client/v4/zones/${zone}/purge_cache`)).toBe(false);
  expect(isCloudflarePurge("POST", "/client/v4/zones/a/b/purge_cache")).toBe(false);
});

test("answers have Cloudflare's form", () => {
  expect(JSON.parse(cloudflareAnswer(200, "", "7"))).toEqual({
    success: true,
    errors: [],
    messages: [],
    result: { id: "7" },
  });
  expect(JSON.parse(cloudflareAnswer(403, "no right", null))).toEqual({
    success: false,
    errors: [{ code: 10000, message: "no right" }],
    messages: [],
    result: null,
  });
});
