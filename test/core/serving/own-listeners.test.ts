// Which addresses lead back to this agent.

import { expect, test } from "vitest";
import { reachesOwn } from "../../../src/core/serving/own-listeners.ts";

const own = [
  { host: "0.0.0.0", port: 80 },
  { host: "127.0.0.1", port: 9_180 },
  { host: "192.0.2.7", port: 8_443 },
  { host: "localhost", port: 9_000 },
  { host: "::", port: 443 },
];
const local = (): string[] => ["127.0.0.1", "192.0.2.7", "fd00::7", "fe80::1"];

test.each([
  ["127.0.0.1", 80],
  ["127.9.9.9", 80],
  ["localhost", 80],
  ["app.localhost", 80],
  ["192.0.2.7", 80],
  ["[::ffff:192.0.2.7]", 80],
  ["::ffff:7f00:1", 80],
  ["[::ffff:0:192.0.2.7]", 80],
  ["[::1]", 80],
  ["fd00:0:0::7", 443],
  ["FD00::7", 443],
  ["127.0.0.1", 9_180],
  ["LOCALHOST.", 9_180],
  ["192.0.2.7", 8_443],
  ["::1", 9_000],
  ["127.0.0.1", 9_000],
])("%s port %i is the agent itself", (host, port) => {
  expect(reachesOwn(host, port, own, local)).toBe(true);
});

test.each([
  ["127.0.0.1", 8_081],
  ["192.0.2.8", 80],
  ["192.0.2.7", 9_180], // Listens on the loopback alone.
  ["127.0.0.1", 8_443], // Not on the loopback: another program may.
  ["127.0.0.2", 9_180],
  ["origin.example.com", 80], // Judged when it has been resolved.
])("%s port %i is somebody else", (host, port) => {
  expect(reachesOwn(host, port, own, local)).toBe(false);
});

test("interfaces are looked at only where the port fits", () => {
  const never = (): string[] => {
    throw new Error("asked");
  };
  expect(reachesOwn("192.0.2.7", 8_081, own, never)).toBe(false);
});
