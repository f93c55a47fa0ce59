// Asking a server for a list: what comes whole, what does not, and where a URL may not lead.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fetchList, type FetchOptions } from "../../../src/central/jobs/list-fetch.ts";

let handle: (request: IncomingMessage, response: ServerResponse) => void;
const server = createServer((request, response) => handle(request, response));
let url: string;
beforeEach(async () => {
  const listening = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", listening.resolve);
  await listening.promise;
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/list.txt`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const options: FetchOptions = {
  mayBePrivate: true,
  held: null,
  signal: new AbortController().signal,
};

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(body)).toString();
}

test("a list comes with what the server says of it, and nothing is asked under a condition", async () => {
  let asked: IncomingMessage["headers"] = {};
  handle = ({ headers }, response) => {
    asked = headers;
    response.setHeader("etag", '"a"');
    response.setHeader("last-modified", "Sat, 28 Nov 2026 08:00:00 GMT");
    response.end("192.0.2.7\n");
  };
  const fetched = await fetchList(url, options);
  expect(fetched).toMatchObject({
    kind: "list",
    told: { etag: '"a"', lastModified: "Sat, 28 Nov 2026 08:00:00 GMT" },
  });
  if (fetched.kind === "list") expect(await textOf(fetched.body)).toBe("192.0.2.7\n");
  expect(asked).toMatchObject({ "accept-encoding": "identity", "user-agent": "accel-central" });
  expect(asked).not.toHaveProperty("if-none-match");
  expect(asked).not.toHaveProperty("if-modified-since");
});

test("what is held is asked for by its tag and time, and 304 says that it is as before", async () => {
  let asked: IncomingMessage["headers"] = {};
  handle = ({ headers }, response) => {
    asked = headers;
    response.writeHead(304).end();
  };
  const held = { etag: '"a"', lastModified: "Sat, 28 Nov 2026 08:00:00 GMT" };
  expect(await fetchList(url, { ...options, held })).toEqual({ kind: "unchanged" });
  expect(asked).toMatchObject({
    "if-none-match": '"a"',
    "if-modified-since": "Sat, 28 Nov 2026 08:00:00 GMT",
  });
  expect(await fetchList(url, options)).toEqual({
    kind: "failed",
    reason: "the server answered 304",
  });
});

test.each([
  [404, {}, "the server answered 404"],
  [204, {}, "the server answered 204"],
  [
    301,
    { location: "https://other.example/list" },
    "the server answered 301 and leads to https://other.example/list; redirects are not followed, so name that URL if it is right",
  ],
])("%s is a reason", async (status, headers, reason) => {
  handle = (_request, response) => void response.writeHead(status, headers).end();
  expect(await fetchList(url, options)).toEqual({ kind: "failed", reason });
});

test("a server that asks for time gets it, a day at most", async () => {
  for (const [text, waitMs] of [
    ["120", 120_000],
    ["9999999", 86_400_000],
  ] as const) {
    handle = (_request, response) => void response.writeHead(429, { "retry-after": text }).end();
    expect(await fetchList(url, options)).toEqual({
      kind: "failed",
      reason: "the server answered 429",
      waitMs,
    });
  }
});

test("a list that is encoded unasked is not read", async () => {
  handle = (_request, response) => {
    response.setHeader("content-encoding", "gzip");
    response.end(gzipSync("192.0.2.7"));
  };
  expect(await fetchList(url, options)).toEqual({
    kind: "failed",
    reason: "the server sent the list encoded (gzip), which it was not asked for",
  });
});

test("a list that breaks off does not pass for a whole one", async () => {
  handle = (_request, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("192.0.2.7\n");
    setTimeout(() => response.destroy(), 50);
  };
  const fetched = await fetchList(url, options);
  expect(fetched.kind).toBe("list");
  if (fetched.kind === "list")
    await expect(textOf(fetched.body)).rejects.toThrow("the list broke off after 10 bytes");
});

test("a server that falls silent is left, before its answer and in it", async () => {
  handle = () => {};
  const silenceMs = 100;
  expect(await fetchList(url, { ...options, silenceMs })).toEqual({
    kind: "failed",
    reason: "the server was silent for 0 s",
  });
  handle = (_request, response) => void response.write("192.0.2.7\n");
  const fetched = await fetchList(url, { ...options, silenceMs });
  if (fetched.kind === "list") await expect(textOf(fetched.body)).rejects.toThrow("broke off");
  expect(fetched.kind).toBe("list");
});

test("a list of more than 96 MiB is left where it is", async () => {
  handle = (_request, response) => {
    const piece = Buffer.alloc(4 * 1024 * 1024, "#");
    const more = (): void => {
      while (!response.destroyed && response.write(piece));
    };
    response.on("drain", more);
    more();
  };
  const fetched = await fetchList(url, options);
  if (fetched.kind !== "list") throw new Error("there is no list");
  let bytes = 0;
  const read = async (): Promise<void> => {
    for await (const piece of fetched.body) bytes += piece.length;
  };
  await expect(read()).rejects.toThrow("the list has more than 96 MiB");
  expect(bytes).toBeLessThanOrEqual(96 * 1024 * 1024);
});

test("a server that drips is left", async () => {
  handle = (_request, response) => {
    const dripping = setInterval(() => response.write("#\n"), 20);
    response.on("close", () => clearInterval(dripping));
  };
  const fetched = await fetchList(url, { ...options, slowAfterMs: 200 });
  if (fetched.kind === "list")
    await expect(textOf(fetched.body)).rejects.toThrow("less than 1024 bytes a second");
  expect(fetched.kind).toBe("list");
});

test("nobody there is a reason", async () => {
  server.close();
  server.closeAllConnections();
  expect(await fetchList(url, options)).toMatchObject({
    kind: "failed",
    reason: expect.stringContaining("takes no connections"),
  });
});

test("a private address is not connected to, whether it stands in the URL or behind a name", async () => {
  let requests = 0;
  handle = (_request, response) => {
    requests++;
    response.end();
  };
  const closed = { ...options, mayBePrivate: false };
  const { port } = new URL(url);
  for (const host of ["127.0.0.1", "[::1]", "169.254.169.254", "10.0.0.1", "localhost", "0x7f.1"])
    expect(await fetchList(`http://${host}:${port}/`, closed)).toEqual({
      kind: "failed",
      reason: "the URL must not lead to a private address",
    });
  const leads = await fetchList(`http://lists.example:${port}/`, {
    ...closed,
    resolve: (_name, _options, callback) =>
      callback(null, [
        { address: "192.88.99.1", family: 4 },
        { address: "127.0.0.1", family: 4 },
      ]),
  });
  expect(leads).toMatchObject({ reason: "lists.example leads to a private address" });
  expect(await fetchList("file:///etc/passwd", closed)).toMatchObject({
    reason: "the URL must be a URL with http:// or https://",
  });
  expect(requests).toBe(0);
});
