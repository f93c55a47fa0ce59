// What central finds where a host leads: the challenge, or what is wrong, in words.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SelfCheck } from "../../../src/central/acme/self-check.ts";

const never = new AbortController().signal;
const servers: Server[] = [];
const answers = new Map<
  string,
  (path: string) => { status: number; body: string; location?: string }
>();
let port = 0;

/** Addresses of one port: the second has the port of the first. */
async function listen(address: string, wanted: number): Promise<number> {
  const server = createServer((request, response) => {
    const found = answers.get(address)?.(request.url ?? "") ?? { status: 404, body: "" };
    const location = found.location === undefined ? {} : { location: found.location };
    response.writeHead(found.status, location).end(found.body);
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject).listen(wanted, address, resolve);
  await promise;
  servers.push(server);
  return (server.address() as AddressInfo).port;
}
beforeAll(async () => {
  port = await listen("127.0.0.1", 0);
  await listen("127.0.0.2", port);
});
afterAll(() => servers.forEach((server) => server.close()));

const sought = { host: "127.0.0.1", token: "t-1", keyAuthorization: "t-1.key" };

async function look(mayBePrivate = true, host = sought.host) {
  const check = new SelfCheck({ resolvers: [], port, mayBePrivate, version: "1.2.3" });
  return check.look({ ...sought, host }, never);
}

/** Looks at a host that leads to these addresses, as any other name does. */
async function lookAt(host: string, addresses: readonly string[], mayBePrivate = true) {
  const resolve = async (): Promise<readonly string[]> => addresses;
  const settings = { resolvers: [], port, mayBePrivate, version: "1.2.3", resolve };
  return new SelfCheck(settings).look({ ...sought, host }, never);
}

test.each([
  ["the challenge", { status: 200, body: "t-1.key" }, undefined],
  ["the challenge with a line end", { status: 200, body: "t-1.key\n" }, undefined],
  ["another text", { status: 200, body: "t-1.other" }, "answers something else than the challenge"],
  ["a long text", { status: 200, body: "x".repeat(100_000) }, "answers something else"],
  ["404", { status: 404, body: "" }, "127.0.0.1 at 127.0.0.1 answers 404 to the challenge"],
  ["a redirect to an odd port", { status: 302, body: "", location: "http://127.0.0.1:1/" }, "where no directory follows"],
  ["a redirect to another scheme", { status: 302, body: "", location: "ftp://127.0.0.1/" }, "where no directory follows"],
  ["a redirect without end", { status: 302, body: "", location: "http://127.0.0.1/again" }, "redirects more than 5 times"],
])("%s", async (_, answer, reason) => {
  answers.set("127.0.0.1", () => answer);
  const looked = await look();
  if (reason === undefined) expect(looked).toEqual({ kind: "there" });
  else expect(looked).toMatchObject({ kind: "elsewhere", reason: expect.stringContaining(reason) });
}); // prettier-ignore

test("a redirect to where the challenge is", async () => {
  answers.set("127.0.0.1", (path) =>
    path === "/moved"
      ? { status: 200, body: "t-1.key" }
      : { status: 301, body: "", location: "http://127.0.0.1/moved" },
  );
  expect(await look()).toEqual({ kind: "there" });
});

test("nobody who listens, and a private address", async () => {
  const nobody = new SelfCheck({ resolvers: [], port: 1, mayBePrivate: true, version: "1.2.3" });
  expect(await nobody.look(sought, never)).toMatchObject({
    kind: "elsewhere",
    reason: expect.stringMatching(/^127\.0\.0\.1 at 127\.0\.0\.1, port 1: .*ECONNREFUSED/),
  });
  expect(await look(false)).toEqual({
    kind: "elsewhere",
    reason: "127.0.0.1 is a private address",
  });
});

test("a name that leads to a private address is not connected to", async () => {
  let asked = 0;
  answers.set("127.0.0.1", () => {
    asked++;
    return { status: 200, body: "t-1.key" };
  });
  expect(await lookAt("a.example", ["192.0.43.7", "127.0.0.1"], false)).toEqual({
    kind: "elsewhere",
    reason: "a.example leads to a private address, 127.0.0.1",
  });
  expect(asked).toBe(0);
});

test("a redirect to a private address is not followed, named or resolved", async () => {
  const seen: string[] = [];
  // The first address stands for a public one; what the answer leads to is judged.
  for (const [location, reason] of [
    ["http://127.0.0.2/", "127.0.0.2 is a private address"],
    ["http://inner.example/", "inner.example leads to a private address, 10.0.0.1"],
  ] as const) {
    answers.set("127.0.0.1", () => {
      seen.push(location);
      return { status: 302, body: "", location };
    });
    const resolve = async (host: string): Promise<readonly string[]> =>
      host === "a.example" ? ["127.0.0.1"] : ["10.0.0.1"];
    const settings = {
      resolvers: [],
      port,
      version: "1.2.3",
      resolve,
      get mayBePrivate() {
        return seen.length === 0;
      },
    };
    seen.splice(0);
    expect(await new SelfCheck(settings).look({ ...sought, host: "a.example" }, never)).toEqual({
      kind: "elsewhere",
      reason: `a.example at 127.0.0.1 redirects, and ${reason}`,
    });
    expect(seen).toEqual([location]);
  }
});

test("a host with more addresses than anybody means is wrong", async () => {
  const many = Array.from({ length: 17 }, (_, no) => `127.0.1.${no}`);
  expect(await lookAt("a.example", many)).toEqual({
    kind: "elsewhere",
    reason: "a.example has more than 16 addresses",
  });
});

test("each address is looked at: one wrong of several is told", async () => {
  answers.set("127.0.0.1", () => ({ status: 200, body: "t-1.key" }));
  answers.set("127.0.0.2", () => ({ status: 404, body: "" }));
  expect(await lookAt("a.example", ["127.0.0.1", "127.0.0.2"])).toEqual({
    kind: "elsewhere",
    reason: "a.example at 127.0.0.2 answers 404 to the challenge",
  });
  answers.set("127.0.0.2", () => ({ status: 200, body: "t-1.key" }));
  expect(await lookAt("a.example", ["127.0.0.1", "127.0.0.2"])).toEqual({ kind: "there" });
});

test("a name that is no host of a URL is wrong, and no fault of central", async () => {
  expect(await lookAt("a.1", ["127.0.0.1"])).toMatchObject({
    kind: "elsewhere",
    reason: expect.stringMatching(/^a\.1 cannot be looked at: /),
  });
});
