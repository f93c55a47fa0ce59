// The client for origins over TLS is loaded for states that have such an origin, and for no others.

import { expect, test } from "vitest";
import {
  hasTlsOrigin,
  loadTlsOrigins,
  openTlsPool,
  PoolToCome,
} from "../../../../src/agent/accelerator/origin/tls-origins.ts";
import { TlsPool } from "../../../../src/agent/accelerator/origin/tls-pool.ts";
import { stateOf } from "../edge.ts";

test.each([
  ["no devlove", null, false],
  ["no backend", {}, false],
  ["an origin without TLS", { backend: { urls: ["http://origin.example"] } }, false],
  ["one over TLS", { backend: { urls: ["https://origin.example"] } }, true],
  [
    "one of two over TLS, in capitals",
    { backend: { urls: ["http://origin.example", "HTTPS://origin.example"] } },
    true,
  ],
])("a state with %s", (_name, site, isOverTls) => {
  expect(hasTlsOrigin(stateOf(1, site))).toBe(isOverTls);
});

test("what is opened before the client is loaded waits for it, what is opened afterwards does not", async () => {
  const options = {
    origin: new URL("https://origin.example"),
    connectMs: 1_000,
    connectionsMax: 1,
    guard: { ownListeners: [] },
    steadyMs: () => 0,
  };
  const early = openTlsPool(options);
  expect(early).toBeInstanceOf(PoolToCome);
  await loadTlsOrigins();
  const late = openTlsPool(options);
  expect(late).toBeInstanceOf(TlsPool);
  await Promise.all([early.destroy(), late.destroy()]);
});
