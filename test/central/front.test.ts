// What all answers of central carry so that a browser does nothing with them but show them, and what is said while it stops.

import { expect, test } from "vitest";
import { call, settingsOf, start } from "../support/central-whole.ts";
import { tempDir } from "../support/temp-dir.ts";

const paths = [
  "/",
  "/nothing/here",
  "/metrics",
  "/readyz",
  "/presentation-api/v1/customer/",
  "/presentation-api/v1/no-such-path/",
  "/presentation-api/v1/openapi.json",
  "/mail/recover/",
];

test.each([
  ["http://127.0.0.1:8000", null],
  ["https://central.example.com", "max-age=31536000"],
])("behind %s every answer says what it is not for", async (baseUrl, transport) => {
  using dir = tempDir();
  await using central = await start(settingsOf(dir.path, `base_url: ${baseUrl}\n`));
  for (const path of paths) {
    const { headers } = await fetch(central.url + path, { redirect: "manual" });
    const policy = headers.get("content-security-policy") ?? "";
    expect({
      path,
      nosniff: headers.get("x-content-type-options"),
      referrer: headers.get("referrer-policy"),
      resources: headers.get("cross-origin-resource-policy"),
      transport: headers.get("strict-transport-security"),
      framed: /frame-ancestors 'none'/.test(policy),
      loads: /default-src 'none'/.test(policy),
    }).toEqual({
      path,
      nosniff: "nosniff",
      referrer: "no-referrer",
      resources: "same-origin",
      transport,
      framed: true,
      loads: true,
    });
  }
});

test("starts of trials are counted by the /64 of an IPv6 visitor", async () => {
  using dir = tempDir();
  const more = "trusted_proxies: [127.0.0.1]\nlimits:\n  trials_per_address: 2\n";
  await using central = await start(settingsOf(dir.path, more));
  const from = async (address: string, username: string): Promise<number> => {
    const { status } = await fetch(`${central.url}/presentation-api/v1/trial/`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-forwarded-for": address },
      body: JSON.stringify({ username }),
    });
    return status;
  };
  expect(await from("2001:db8:0:1::1", "one")).toBe(201);
  expect(await from("2001:db8:0:1:ffff::2", "two")).toBe(201);
  expect(await from("2001:db8:0:1::3", "three")).toBe(429);
  expect(await from("2001:db8:0:2::1", "four")).toBe(201);
});

test("unknown tokens of an address are limited; a token that was good goes on", async () => {
  using dir = tempDir();
  await using central = await start(settingsOf(dir.path));
  const { token } = await call(central.url, "POST", "/trial/", undefined, { username: "good" });
  const get = async (one: string): Promise<Response> =>
    fetch(`${central.url}/presentation-api/v1/customer/`, {
      headers: { authorization: `Token ${one}` },
    });
  expect((await get(String(token))).status).toBe(200);
  const statuses: number[] = [];
  const waits = new Set<string | null>();
  for (let n = 0; n < 150; n++) {
    const { status, headers } = await get(`unknown-${n}`);
    statuses.push(status);
    if (status === 429) waits.add(headers.get("retry-after"));
  }
  expect(statuses.slice(0, 100)).toEqual(Array.from({ length: 100 }, () => 401));
  expect([...waits]).toEqual(["1"]);
  expect((await get(String(token))).status).toBe(200);
});
