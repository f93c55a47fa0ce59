// Where requests to directories must not lead, and what is told of those that fail.

import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DirectoryHttp } from "../../../src/central/acme/directory-http.ts";
import { retryAfterMs } from "../../../src/core/http/retry-after.ts";
import { makeAuthority } from "../../support/x509.ts";

const authority = makeAuthority();
const { chain, key } = authority.issue({ names: ["127.0.0.1", "acme.example.com"] });
const never = new AbortController().signal;
const seen: string[] = [];
const server = createServer({ cert: chain, key }, (request, response) => {
  seen.push(`${request.method} ${request.url} ${request.headers["user-agent"]}`);
  if (request.url === "/long") response.end("x".repeat(2 ** 21));
  else if (request.url === "/moved") response.writeHead(302, { location: "/" }).end();
  else response.writeHead(200, { "retry-after": "7" }).end("fine");
});
let port = 0;
beforeAll(async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  ({ port } = server.address() as AddressInfo);
});
afterAll(() => server.close());

const settings = {
  version: "1.2.3",
  mayBePrivate: true,
  authority: authority.root.pem,
  now: () => new Date(0),
};

async function ask(url: string, changed: Partial<typeof settings> = {}) {
  using http = new DirectoryHttp({
    ...settings,
    ...changed,
    resolve: (_name, _options, callback) => callback(null, [{ address: "127.0.0.1", family: 4 }]),
  });
  return await http.ask({ method: "GET", url }, never);
}

test("a directory with an authority of its own is asked, and says when it wants to be asked again", async () => {
  const answered = await ask(`https://127.0.0.1:${port}/directory`);
  expect(answered).toMatchObject({
    kind: "answered",
    status: 200,
    body: "fine",
    retryAfterMs: 7_000,
  });
  expect(seen.at(-1)).toBe("GET /directory accel-central/1.2.3");
});

test("a private address is asked only where the settings allow it, named or resolved", async () => {
  const before = seen.length;
  for (const host of ["127.0.0.1", "acme.example.com", "[::1]", "localhost"])
    expect(await ask(`https://${host}:${port}/`, { mayBePrivate: false })).toMatchObject({
      kind: "unreachable",
      reason: expect.stringContaining("a private address"),
    });
  expect(seen.length).toBe(before);
});

test("what cannot be trusted or reached, is too long, or is no https, is told", async () => {
  const unknown = makeAuthority().root.pem;
  const told = [
    await ask(`https://127.0.0.1:${port}/`, { authority: unknown }),
    await ask(`https://127.0.0.1:${port}/long`),
    await ask(`http://127.0.0.1:${port}/`),
    await ask("https://acme.example.com:1/"),
  ];
  expect(told).toMatchObject([
    { kind: "unreachable", reason: expect.stringMatching(/certificate/) },
    { kind: "unreachable", reason: expect.stringContaining("longer than") },
    { kind: "unreachable", reason: expect.stringContaining("is not https") },
    {
      kind: "unreachable",
      reason:
        "the directory acme.example.com:1 cannot be reached: connect ECONNREFUSED 127.0.0.1:1",
    },
  ]);
});

test("with an authority of its own, those that count for the whole process count as before", async () => {
  const before = getCACertificates("default");
  const unknown = makeAuthority().root.pem;
  try {
    setDefaultCACertificates([...before, authority.root.pem]);
    const answered = await ask(`https://127.0.0.1:${port}/directory`, { authority: unknown });
    expect(answered).toMatchObject({ kind: "answered", status: 200 });
  } finally {
    setDefaultCACertificates(before);
  }
});

test("redirects are answers, and are not followed", async () => {
  expect(await ask(`https://127.0.0.1:${port}/moved`)).toMatchObject({ status: 302 });
});

test.each([
  ["120", 120_000],
  ["Thu, 01 Jan 1970 00:00:30 GMT", 30_000],
  ["Thu, 01 Jan 1970 00:00:00 GMT", 0],
  ["soon", undefined],
  [undefined, undefined],
])("Retry-After: %s", (field, ms) => {
  expect(retryAfterMs(field, 0)).toBe(ms);
});
