// Unknown tokens are limited by address; a token that was right before is not held up by others of its address.

import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { createSealer } from "../../../../src/base/seal.ts";
import { createRateLimit } from "../../../../src/central/agents/rate-limit.ts";
import { createAuthenticate } from "../../../../src/central/api/http/authenticate.ts";
import {
  CustomerStore,
  type Transactions,
} from "../../../../src/central/store/engine/customer-store.ts";
import { until } from "../../../support/until.ts";
import { openApi } from "../api-harness.ts";

test("beside wrong tokens of its address, who was let in before is let in, and who was not waits", async () => {
  await using api = await openApi();
  const [known, fresh] = [await api.trial("known"), await api.trial("fresh")];
  const ask = async (token: string, address = "192.0.2.7"): Promise<number> => {
    const headers = { "x-forwarded-for": address };
    return (await api.call("GET", "/deployment-site/", { token, headers })).status;
  };
  expect(await ask(known)).toBe(200);
  for (let no = 0; no < 100; no++) expect(await ask(`wrong${no}`)).toBe(401);
  expect(await ask("wrong")).toBe(429);
  expect(await ask(known)).toBe(200);
  expect(await ask(fresh)).toBe(429);
  expect(await ask(fresh, "192.0.2.8")).toBe(200);
  // It proved itself elsewhere, and does so everywhere.
  expect(await ask(fresh)).toBe(200);
});

test("sessions that ended use up nothing of what an address may get wrong with tokens", async () => {
  await using api = await openApi();
  const fresh = await api.trial("fresh");
  const dead = { cookie: "__Host-accel-session=gone", "sec-fetch-site": "same-origin" };
  const statuses = new Set<number>();
  for (let no = 0; no < 110; no++)
    statuses.add((await api.call("GET", "/session/", { headers: dead })).status);
  expect(statuses).toEqual(new Set([401, 429]));
  expect((await api.call("GET", "/session/", { token: fresh })).status).toBe(200);
});

test("who reads is answered though nothing can be noted of the token: a full disk is no reason", async () => {
  await using api = await openApi();
  const token = await api.trial("reader");
  const failures: unknown[] = [];
  let isFull = false;
  const writes = new CustomerStore({
    store: api.store,
    sealer: createSealer(Buffer.alloc(32, 7)),
    now: () => api.clock,
    randomBytes,
  });
  const transact: Transactions["transact"] = async (action) =>
    writes.transact(async (work) => {
      const found = await action(work);
      if (isFull && found === undefined) throw new Error("database or disk is full");
      return found;
    });
  const run: Transactions["run"] = async (action) =>
    writes.run(async (work) => {
      const done = await action(work);
      if (isFull && done.value === undefined) throw new Error("database or disk is full");
      return done;
    });
  const authenticate = createAuthenticate({
    store: { transact, run },
    rateLimit: (limit) => createRateLimit(limit, () => api.clock.getTime()),
    randomBytes,
    onFailure: (error) => failures.push(error),
  });
  isFull = true;
  const request = { method: "GET", headers: { authorization: `Token ${token}` } };
  expect(await authenticate("token", request, "192.0.2.7")).toMatchObject({ ok: true });
  await until("the failure is told", () => failures.length > 0);
});
