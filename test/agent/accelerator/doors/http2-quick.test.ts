// HTTP/2: plain requests that are answered in the step in which they are told.

import { expect, onTestFinished, test, vi } from "vitest";
import type { Handler } from "../stage.ts";
import { QuickAnswers } from "../../../../src/agent/accelerator/lane/quick-answers.ts";
import type { RequestRecord } from "../../../../src/wire/request-log.ts";
import { until } from "../../../support/until.ts";
import { stateOf, type Asked } from "../edge.ts";
import { code, flags, frame, get, pack, visitByFrames } from "../http2-frames.ts";
import { visitByHttp2, type Http2Visitor } from "../secure-clients.ts";
import { openSecureStage, type SecureOptions } from "../secure-stage.ts";

const whole = flags.endHeaders | flags.endStream;
const large = 100_000;

/** Answers that may be stored, each with fields that HTTP/2 cannot carry or has to lower. */
const stored: Handler = (request, response) => {
  const body = request.url === "/large" ? "y".repeat(large) : `of ${request.url}`;
  const head = {
    "Cache-Control": "max-age=600",
    "Content-Length": body.length,
    ETag: `"${request.url}"`,
    "X-Kept": "Yes",
    Connection: "keep-alive, x-hop",
    "X-Hop": "ends here",
    ...(request.url === "/varies" && { Vary: "Accept-Language" }),
  };
  response.writeHead(request.url === "/gone" ? 410 : 200, head).end(body);
};

/** What the quick answers said so far. */
function watchQuick(): { readonly kinds: () => readonly string[] } {
  const quick = vi.spyOn(QuickAnswers.prototype, "answer");
  onTestFinished(() => quick.mockRestore());
  return {
    kinds: () => quick.mock.results.map(({ value }) => (value as { readonly kind: string }).kind),
  };
}

const questions: readonly (readonly [string, Asked?])[] = [
  ["/a"],
  ["/a"],
  ["/a", { method: "HEAD" }],
  ["/a", { headers: { "if-none-match": '"/a"' } }],
  ["/a", { method: "HEAD", headers: { "if-none-match": '"/a"' } }],
  ["/a", { headers: { "if-none-match": '"other"' } }],
  ["/a", { headers: { cookie: ["a=1", "b=2"], te: "trailers" } }],
  ["/a", { headers: { range: "bytes=0-1" } }],
  ["/a", { method: "POST", body: "x" }],
  ["/large"],
  ["/large"],
  ["/gone"],
  ["/gone"],
  ["/varies", { headers: { "accept-language": "de" } }],
  ["/varies", { headers: { "accept-language": "de" } }],
  ["/varies", { headers: { "accept-language": "fr" } }],
  ["/moved?x=1"],
  ["/moved?x=1", { method: "HEAD" }],
];

type Told = Omit<RequestRecord, keyof typeof untimed>;

/** Times differ. */
const untimed = { when: "", duration: "", backend_time: "" };

async function answers(options: SecureOptions) {
  const site = {
    redirects: [{ from: "/moved", to: "/new", status: 302 as const }],
    tls: { hsts_s: 60 },
  };
  await using s = await openSecureStage(stored, { site, ...options });
  await using visitor = await visitByHttp2(s.port);
  const said: unknown[] = [];
  for (const [path, asked] of questions) {
    const { status, headers, text } = await visitor.ask(path, asked);
    const { date, age, "cache-status": cached, ...lasting } = headers;
    const how = String(cached).replace(/ttl=\d+/, "ttl");
    said.push({ path, status, text, how, dated: typeof date, aged: typeof age, ...lasting });
  }
  await until("the records", () => s.edge.records.length === questions.length);
  const records = s.edge.records.map((record): Told => ({ ...record, ...untimed }));
  return { said, records };
}

test("an answer and its record are the same as those of the pipeline", async () => {
  const watched = watchQuick();
  const quick = await answers({});
  const kinds = watched.kinds();
  const slow = await answers({ lane: false });
  expect(quick.said).toEqual(slow.said);
  expect(quick.records).toEqual(slow.records);
  // Misses, and what is not plain or has a range, are the pipeline's.
  expect(kinds.filter((kind) => kind === "answer").length).toBe(11);
  expect(watched.kinds().length).toBe(kinds.length);
});

test("a visitor who is blocked is told so at once", async () => {
  const watched = watchQuick();
  const judge = () => ({ kind: "block", reason: "bad-set", bot: "Bad" }) as const;
  await using s = await openSecureStage(stored, { judge });
  await using visitor = await visitByHttp2(s.port);
  const answer = await visitor.ask("/");
  expect(answer.status).toBe(403);
  expect(answer.headers["x-accel-decision"]).toBe("0123456789abcdef");
  expect(answer.headers["date"]).toMatch(/ GMT$/);
  expect(answer.text).toMatch(/^403 /);
  await until("the record", () => s.edge.records.length === 1);
  expect(s.edge.records[0]).toMatchObject({ cache: "blocked", verdict: "block bad-set" });
  expect(watched.kinds()).toEqual(["answer"]);
});

test("an open connection is left to the pipeline while the lane is switched off", async () => {
  const watched = watchQuick();
  await using s = await openSecureStage(stored);
  await using visitor = await visitByHttp2(s.port);
  await visitor.ask("/a");
  await visitor.ask("/a");
  s.edge.switchLane(false);
  expect((await visitor.ask("/a")).text).toBe("of /a");
  expect(watched.kinds()).toEqual(["pass", "answer"]);
  s.edge.switchLane(true);
  await visitor.ask("/a");
  expect(watched.kinds()).toEqual(["pass", "answer", "answer"]);
});

test("a clear and a new state hold for the next stream of a connection", async () => {
  let made = 0;
  const handler: Handler = (_request, response) =>
    void response.writeHead(200, { "Cache-Control": "max-age=600" }).end(`v${++made}`);
  await using s = await openSecureStage(handler);
  await using visitor = await visitByHttp2(s.port);
  const asked = async (): Promise<string> => (await visitor.ask("/a")).text;
  expect([await asked(), await asked()]).toEqual(["v1", "v1"]);
  s.edge.cache.clear(() => true);
  expect([await asked(), await asked()]).toEqual(["v2", "v2"]);
  s.edge.publish(stateOf(2, { redirects: [{ from: "/a", to: "/b", status: 302 }] }));
  expect((await visitor.ask("/a")).headers["location"]).toBe("/b");
});

/** A visitor who takes no body, told the heads of two hits. */
async function twoStuck(options: SecureOptions = {}) {
  const stack = new AsyncDisposableStack();
  const s = stack.use(await openSecureStage(stored, options));
  const visitor = stack.use(await visitByHttp2(s.port));
  await visitor.ask("/large");
  // No window: not one byte of a body may be sent.
  const stuck = stack.use(await visitByFrames(s.port, [[4, 0]]));
  stuck.send(...[1, 3].map((no) => frame("headers", no, pack(get("/large")), whole)));
  await until("the heads", () => [1, 3].every((no) => stuck.has("headers", no)));
  const cut = (): readonly RequestRecord[] =>
    s.edge.records.filter((record) => record.response_status === 499);
  return { s, visitor, stuck, cut, [Symbol.asyncDispose]: async () => stack.disposeAsync() };
}

test("who leaves an answer is recorded as one who left", async () => {
  await using t = await twoStuck();
  t.stuck.send(frame("reset", 1, code(8)));
  await until("a record", () => t.cut().length === 1);
  t.stuck.socket.destroy();
  await until("both", () => t.cut().length === 2);
  expect(t.cut().map(({ cache }) => cache)).toEqual(["hit", "hit"]);
  await asksOn(t.visitor);
});

test("who takes nothing of an answer is cut off", async () => {
  await using t = await twoStuck({ http2: { lookMs: 20, takeMs: 100 } });
  await until("both", () => t.cut().length === 2);
  const isReset = (): boolean => [1, 3].every((no) => t.stuck.has("reset", no));
  await until("the resets", isReset);
  expect(t.stuck.socket.destroyed).toBe(false);
  await asksOn(t.visitor);
});

test("a drain waits for an answer that leaves, and cuts it after its grace", async () => {
  await using t = await twoStuck();
  await t.s.edge.drain(500);
  expect(t.cut().length).toBe(2);
  expect(t.s.edge.openConnections).toBe(0);
});

test("a connection that waits for its answers to be taken is not idle", async () => {
  await using t = await twoStuck({ http2: { idleMs: 100 } });
  await new Promise((later) => setTimeout(later, 300));
  expect(t.stuck.goaway).toBeUndefined();
  for (const no of [1, 3]) t.stuck.send(frame("reset", no, code(8)));
  await t.stuck.closed;
  expect(t.stuck.goaway).toBe(0);
});

test("a status that HTTP/2 cannot carry is a failure that the visitor is told of", async () => {
  const handler: Handler = (_request, response) =>
    void response.writeHead(799, { "Cache-Control": "max-age=600" }).end("odd");
  await using s = await openSecureStage(handler);
  await using visitor = await visitByHttp2(s.port);
  for (const _ of [1, 2, 3]) expect((await visitor.ask("/")).status).toBe(500);
  await until("the records", () => s.edge.records.length === 3);
});

test("under `when_full: block` the room that was kept is the record's", async () => {
  let room = 3;
  const recordRoom = { claim: () => room-- > 0 };
  await using s = await openSecureStage(stored, { recordRoom });
  await using visitor = await visitByHttp2(s.port);
  for (const _ of [1, 2, 3]) expect((await visitor.ask("/a")).status).toBe(200);
  await until("the records", () => s.edge.records.length === 3);
  expect(s.edge.claimed.length).toBe(3);
});

async function asksOn(visitor: Http2Visitor): Promise<void> {
  expect((await visitor.ask("/large")).text.length).toBe(large);
}
