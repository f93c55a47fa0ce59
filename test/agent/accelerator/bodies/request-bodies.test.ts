// Bodies of requests are taken in before an origin is asked: what slow visitors hold, where bodies lie, and what is said when there is no room.

import { connect, type Socket } from "node:net";
import { readdir } from "node:fs/promises";
import { expect, it } from "vitest";
import {
  BudgetOwner,
  SharedBudget,
} from "../../../../src/agent/accelerator/bodies/shared-budget.ts";
import { tempDir } from "../../../support/temp-dir.ts";
import { until } from "../../../support/until.ts";
import { ask, host, openEdge, openOrigin, raw, type Edge, type EdgeOptions } from "../edge.ts";

type Scene = AsyncDisposable & {
  readonly edge: Edge;
  /** The bodies that the origin has received, with the length and the coding that were stated. */
  readonly bodies: { readonly body: Buffer; readonly said: string }[];
  /** The requests that the origin has seen the head of. */
  readonly heads: () => number;
};

async function openScene(options: EdgeOptions = {}, streams = false): Promise<Scene> {
  const stack = new AsyncDisposableStack();
  const bodies: { body: Buffer; said: string }[] = [];
  let heads = 0;
  const origin = stack.use(
    await openOrigin((request, response) => {
      heads++;
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { "content-length": length, "transfer-encoding": coding } = request.headers;
        bodies.push({ body: Buffer.concat(chunks), said: `${length} ${coding}` });
        response.end("taken");
      });
    }),
  );
  const backend = { urls: [origin.url], stream_request_body: streams };
  const edge = stack.use(await openEdge({ ...options, site: { backend } }));
  const end = async (): Promise<void> => stack.disposeAsync();
  return { edge, bodies, heads: () => heads, [Symbol.asyncDispose]: end };
}

const postHead = (length: number): string =>
  `POST /upload HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${length}\r\n\r\n`;

/** A visitor who promises a body and sends its first bytes. */
async function beginPost(edge: Edge, length: number, sent: string): Promise<Socket> {
  const socket = connect(edge.port, "127.0.0.1");
  socket.on("error", () => {});
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.write(postHead(length) + sent, () => resolve());
  await promise;
  return socket;
}

const textOf = async (edge: Edge): Promise<string> => edge.registry.metrics();

it("visitors who send slowly hold no connection of the origin, and are told when they take too long", async () => {
  await using scene = await openScene();
  const { edge } = scene;
  const slow = await Promise.all(
    Array.from({ length: 50 }, async () => beginPost(edge, 100_000, "x")),
  );
  const answers = slow.map(async (socket) => {
    let text = "";
    for await (const chunk of socket as AsyncIterable<Buffer>) text += chunk.toString();
    return text;
  });
  await until("all wait", () => edge.openConnections === 50);
  expect((await ask(edge, "/other", { method: "POST", body: "quick" })).text).toBe("taken");
  expect(scene.heads()).toBe(1);
  edge.steadySkewMs = 30_000;
  for (const answer of await Promise.all(answers)) {
    expect(answer).toMatch(/^HTTP\/1\.1 408 [^]*Connection: close[^]*came too slowly/i);
  }
  expect(scene.heads()).toBe(1);
  const late = edge.records.filter(({ response_status: status }) => status === 408);
  expect(late).toHaveLength(50);
  expect(await textOf(edge)).toContain('accel_agent_request_bodies_total{outcome="late"} 50');
});

it("a body is passed on whole with its length, from memory and from a file that has no name", async () => {
  using directory = tempDir();
  await using scene = await openScene({ bodies: { directory: directory.path } });
  const { edge, bodies } = scene;
  const small = Buffer.from("small");
  const large = Buffer.alloc(3 * 2 ** 20, "large");
  await ask(edge, "/", { method: "POST", body: small });
  await ask(edge, "/", { method: "PUT", body: large });
  await ask(edge, "/", {
    method: "POST",
    body: small,
    headers: { "transfer-encoding": "chunked" },
  });
  expect(bodies.map(({ said }) => said)).toEqual([
    "5 undefined",
    `${large.length} undefined`,
    "5 undefined",
  ]);
  expect(bodies[1]?.body.equals(large)).toBe(true);
  expect(await readdir(directory.path)).toEqual([]);
  await until("all is given back", async () => {
    const text = await textOf(edge);
    return /where="memory"} 0\n/.test(text) && /where="file"} 0\n/.test(text);
  });
  const counted = await textOf(edge);
  expect(counted).toContain('accel_agent_request_bodies_total{outcome="file"} 1');
  expect(counted).toContain('accel_agent_request_bodies_total{outcome="memory"} 2');
});

it("a body that comes while memory is full goes to a file, and its file is gone when its visitor leaves", async () => {
  using directory = tempDir();
  const options = { bodies: { directory: directory.path, memoryMax: 40_000 } };
  await using scene = await openScene(options);
  const { edge } = scene;
  const socket = await beginPost(edge, 100_000, "z".repeat(60_000));
  await until("it lies in a file", async () =>
    (await textOf(edge)).includes('{where="file"} 60000'),
  );
  expect(await readdir(directory.path)).toEqual([]);
  socket.destroy();
  await until("it is given back", async () => (await textOf(edge)).includes('{where="file"} 0'));
  // His end is the end of a body that is shorter than was said: the request is malformed.
  await until("it is recorded", () => edge.records.length === 1);
  expect(edge.records[0]?.response_status).toBe(400);
  expect(scene.heads()).toBe(0);
});

it("where files have no room, 503 says to come again, and 413 that it will never fit", async () => {
  const bodyDisk = new BudgetOwner(1_500_000).share();
  await using scene = await openScene({ bodyDisk });
  const { edge } = scene;
  const body = Buffer.alloc(2_000_000);
  const never = await ask(edge, "/", { method: "POST", body });
  expect([never.status, never.text]).toEqual([
    413,
    "413 Payload Too Large\nThis server takes bodies of 1500000 bytes at most.\n",
  ]);
  const headers = { "transfer-encoding": "chunked" };
  const now = await ask(edge, "/", { method: "POST", body, headers });
  expect([now.status, now.headers["retry-after"]]).toEqual([503, "5"]);
  await until("all is given back", () => new SharedBudget(bodyDisk).own === 0);
  expect((await ask(edge, "/", { method: "POST", body: "small" })).text).toBe("taken");
  expect(scene.heads()).toBe(1);
});

it.each([
  ["that is not there", "/nonexistent"],
  ["that is full", "/dev/full"],
])("a disk %s is an answer, and nothing breaks", async (_what, directory) => {
  await using scene = await openScene({ bodies: { directory } });
  const { edge } = scene;
  const body = Buffer.alloc(2_000_000);
  expect((await ask(edge, "/", { method: "POST", body })).status).toBe(503);
  expect((await ask(edge, "/", { method: "POST", body: "small" })).text).toBe("taken");
});

it("a body that is longer than was said is no part of the request; one that is shorter is never passed on", async () => {
  await using scene = await openScene();
  const { edge, bodies } = scene;
  const longer = await raw(edge, `${postHead(5)}12345678\r\n\r\n`);
  expect(longer).toMatch(/^HTTP\/1\.1 200 [^]*HTTP\/1\.1 400 /);
  const socket = await beginPost(edge, 10, "12345");
  socket.end();
  await until("both are recorded", () => edge.records.length === 3);
  expect(bodies.map(({ body }) => body.toString())).toEqual(["12345"]);
});

it("a site that streams has its origin asked at once, and a slow visitor is given up there as well", async () => {
  await using scene = await openScene({}, true);
  const { edge, bodies } = scene;
  const said = await ask(edge, "/", { method: "POST", body: "quick" });
  expect([said.text, bodies[0]?.said]).toEqual(["taken", "5 undefined"]);
  const socket = await beginPost(edge, 100, "x");
  let answer = "";
  socket.on("data", (chunk: Buffer) => (answer += chunk.toString()));
  await until("the origin is asked", () => scene.heads() === 2);
  edge.steadySkewMs = 30_000;
  await until("it is answered", () => answer.includes("came too slowly"));
  expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  expect(bodies).toHaveLength(1);
});

it.each([
  ["taken in", false],
  ["streamed", true],
])(
  "100 Continue is said when the body begins to be read, where it is %s",
  async (_how, streams) => {
    await using scene = await openScene({}, streams);
    const { edge, bodies } = scene;
    const head = `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 4\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`;
    const socket = connect(edge.port, "127.0.0.1");
    socket.write(head);
    let answer = "";
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      answer += chunk.toString();
      if (answer === "HTTP/1.1 100 Continue\r\n\r\n") socket.write("body");
    }
    expect(answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
    expect(bodies.map(({ body }) => body.toString())).toEqual(["body"]);
  },
);

it("a budget is one for all workers, and what a dead one had is given back", () => {
  const owner = new BudgetOwner(100);
  const [first, second] = [owner.share(), owner.share()];
  const [one, other] = [new SharedBudget(first), new SharedBudget(second)];
  expect([one.take(60), other.take(60), other.take(40), one.take(1)]).toEqual([
    true,
    false,
    true,
    false,
  ]);
  owner.reclaim(first);
  expect([one.own, other.own, other.take(60), other.take(1)]).toEqual([0, 40, true, false]);
});
