// Attempts at tokens of one address: a burst, then five a second; who got a token is not counted.

import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { silentLog } from "../../../src/base/log.ts";
import { Health } from "../../../src/base/health.ts";
import { createTokenRoute } from "../../../src/central/agents/token-route.ts";

test("300 attempts of an address at once, then one each 200 ms; other addresses are not held up", async () => {
  let atMs = 0;
  const route = createTokenRoute({
    store: { credentials: async () => undefined } as never,
    health: new Health(() => new Date(atMs)),
    log: silentLog(),
    now: () => new Date(atMs),
    monotonicMs: () => atMs,
    randomBytes: (count) => Buffer.alloc(count),
    addressOf: (request) => String(request.headers["x-test-address"]),
  });
  const ask = async (address = "192.0.2.1"): Promise<readonly [number, unknown]> => {
    const request = new IncomingMessage(new Socket());
    request.headers["x-test-address"] = address;
    request.push(null);
    const { status, headers } = await route(request);
    return [status, headers?.["retry-after"]];
  };
  // Without a form it is refused, and counted.
  for (let no = 0; no < 300; no++) expect(await ask()).toEqual([400, undefined]);
  expect(await ask()).toEqual([429, 1]);
  expect(await ask("192.0.2.2")).toEqual([400, undefined]);
  atMs = 199;
  expect(await ask()).toEqual([429, 1]);
  atMs = 200;
  expect(await ask()).toEqual([400, undefined]);
  expect(await ask()).toEqual([429, 1]);
  atMs = 1_200;
  for (let no = 0; no < 5; no++) expect(await ask()).toEqual([400, undefined]);
  expect(await ask()).toEqual([429, 1]);
});
