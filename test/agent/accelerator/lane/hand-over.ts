// The matrix of hand-overs: every kind of request, in every split of its bytes, over every way to the lane, behind hits that were asked with it and behind hits
// that were answered before. Each request has the right answer, in its turn, and one record.

import { setImmediate as turn } from "node:timers/promises";
import { Edge, host, openOrigin, stateOf, type Origin } from "../edge.ts";
import { ca, installed, tableOf } from "../secure-clients.ts";
import { proxyV1 } from "../../../support/proxy-headers.ts";
import { RawVisitor } from "../../../support/raw-visitor.ts";

export type Kind = {
  readonly name: string;
  readonly bytes: string;
  readonly method: string;
  /** The final status; what comes before it is 100. */
  readonly status: number;
  readonly continues?: boolean;
  /** Nothing more is answered on its connection. */
  readonly isLast?: boolean;
  /** What a 2xx says: the origin repeats what it was asked. */
  readonly body?: string;
  /** As its record has it: the target, and for what the parser refused what was known of it. */
  readonly uri?: string;
};

const head = (...lines: readonly string[]): string => `${lines.join("\r\n")}\r\n\r\n`;
const named = `Host: ${host}`;
const get = (target: string, ...lines: readonly string[]): string =>
  head(`GET ${target} HTTP/1.1`, named, ...lines);

export const kinds: readonly Kind[] = [
  { name: "a hit", bytes: get("/hit/x", "Accept: */*"), method: "GET", status: 200, body: "GET /hit/x " },
  { name: "a HEAD of a hit", bytes: head("HEAD /hit/x HTTP/1.1", named), method: "HEAD", status: 200, body: "", uri: "/hit/x" },
  { name: "a condition", bytes: get("/hit/x", 'If-None-Match: "1"'), method: "GET", status: 304, body: "" , uri: "/hit/x" },
  { name: "a miss", bytes: get("/miss?a=b"), method: "GET", status: 200, body: "GET /miss?a=b " },
  { name: "a miss of unstated length", bytes: get("/chunked"), method: "GET", status: 200, body: "GET /chunked " },
  { name: "a redirect", bytes: get("/old"), method: "GET", status: 301, uri: "/old" },
  { name: "an unknown host", bytes: head("GET /u HTTP/1.1", "Host: other.example"), method: "GET", status: 421, uri: "/u" },
  { name: "a close", bytes: get("/hit/x", "Connection: close"), method: "GET", status: 200, isLast: true, body: "GET /hit/x " },
  { name: "a close of a miss", bytes: get("/miss", "Connection: close"), method: "GET", status: 200, isLast: true, body: "GET /miss " },
  { name: "a POST with a length", bytes: head("POST /p HTTP/1.1", named, "Content-Length: 5") + "hello", method: "POST", status: 200, body: "POST /p hello" },
  { name: "a POST of nothing", bytes: head("POST /p HTTP/1.1", named, "Content-Length: 0"), method: "POST", status: 200, body: "POST /p " },
  { name: "a chunked POST", bytes: `${head("POST /p HTTP/1.1", named, "Transfer-Encoding: chunked")}3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n`, method: "POST", status: 200, body: "POST /p hello" },
  { name: "a chunked POST with a trailer", bytes: `${head("POST /p HTTP/1.1", named, "Trailer: X", "Transfer-Encoding: chunked")}1\r\na\r\n0\r\nX: y\r\n\r\n`, method: "POST", status: 200, body: "POST /p a" },
  { name: "a body that holds a request", bytes: head("POST /p HTTP/1.1", named, "Content-Length: 45") + get("/hit/x").slice(0, 45), method: "POST", status: 200, body: `POST /p ${get("/hit/x").slice(0, 45)}` },
  { name: "a GET with a body", bytes: `${get("/g", "Content-Length: 3")}abc`, method: "GET", status: 200, body: "GET /g abc" },
  { name: "an expectation", bytes: head("POST /p HTTP/1.1", named, "Expect: 100-continue", "Content-Length: 2") + "hi", method: "POST", status: 200, continues: true, body: "POST /p hi" },
  { name: "another expectation", bytes: get("/e", "Expect: the-best"), method: "GET", status: 417, uri: "/e" },
  { name: "an upgrade to HTTP/2", bytes: get("/hit/x", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__"), method: "GET", status: 200, isLast: true, body: "GET /hit/x " },
  { name: "a whole URL", bytes: get(`http://${host}/hit/x`), method: "GET", status: 200, body: "GET /hit/x ", uri: `http://${host}/hit/x` },
  { name: "HTTP/1.0", bytes: head("GET /hit/x HTTP/1.0", named), method: "GET", status: 200, isLast: true, body: "GET /hit/x " },
  { name: "HTTP/1.0 that stays", bytes: head("GET /hit/x HTTP/1.0", named, "Connection: keep-alive"), method: "GET", status: 200, body: "GET /hit/x " },
  { name: "OPTIONS of everything", bytes: head("OPTIONS * HTTP/1.1", named), method: "OPTIONS", status: 204, body: "", uri: "*" },
  { name: "a rare method", bytes: head("PROPFIND /dav HTTP/1.1", named), method: "PROPFIND", status: 200, body: "PROPFIND /dav " },
  { name: "TRACE", bytes: head("TRACE /t HTTP/1.1", named), method: "TRACE", status: 405, uri: "/t" },
  { name: "CONNECT", bytes: head(`CONNECT ${host}:443 HTTP/1.1`, named), method: "CONNECT", status: 405, isLast: true, uri: `${host}:443` },
  { name: "an empty line before it", bytes: `\r\n${get("/hit/x")}`, method: "GET", status: 200, body: "GET /hit/x " },
  { name: "TE", bytes: get("/hit/x", "TE: trailers", "Connection: TE"), method: "GET", status: 200, body: "GET /hit/x " },
  { name: "a value of other bytes", bytes: get("/hit/x", "X: caf\u00e9"), method: "GET", status: 200, body: "GET /hit/x " },
  { name: "two cookies", bytes: get("/miss", "Cookie: a=1", "Cookie: b=2"), method: "GET", status: 200, body: "GET /miss " },
  { name: "two hosts", bytes: get("/two", named), method: "GET", status: 400, uri: "/two" },
  { name: "no host", bytes: head("GET /none HTTP/1.1", "Accept: */*"), method: "GET", status: 400, uri: "/none" },
  { name: "a fragment", bytes: get("/hit/x#y"), method: "GET", status: 400, uri: "/hit/x#y" },
  { name: "101 fields", bytes: get("/hit/x", ...Array.from({ length: 100 }, (_, no) => `X-${no}: y`)), method: "GET", status: 200, body: "GET /hit/x " },
  { name: "201 fields", bytes: get("/many", ...Array.from({ length: 200 }, (_, no) => `X-${no}: y`)), method: "GET", status: 431, uri: "/many" },
  { name: "a head of 9 KiB", bytes: get("/hit/x", `X: ${"y".repeat(9_000)}`), method: "GET", status: 200, body: "GET /hit/x " },
  { name: "a target of 3 KiB", bytes: get(`/hit/x?${"y".repeat(3_000)}`), method: "GET", status: 200, body: `GET /hit/x?${"y".repeat(3_000)} ` },
  { name: "a head of 40 KiB", bytes: get("/large", `X: ${"y".repeat(40_000)}`), method: "GET", status: 431, isLast: true },
  { name: "a folded field", bytes: get("/fold", "X: a", " b"), method: "GET", status: 400, isLast: true },
  { name: "line feeds alone", bytes: `GET /lf HTTP/1.1\n${named}\n\n`, method: "GET", status: 400, isLast: true },
  { name: "a blank before a colon", bytes: get("/b", "X : a"), method: "GET", status: 400, isLast: true },
  { name: "a length and chunks", bytes: `${head("POST /s HTTP/1.1", named, "Content-Length: 3", "Transfer-Encoding: chunked")}0\r\n\r\n`, method: "POST", status: 400, isLast: true },
  { name: "no version", bytes: "GET /\r\n\r\n", method: "GET", status: 505, isLast: true, uri: "/" },
  { name: "an odd byte in a target", bytes: get("/a\u0001b"), method: "GET", status: 400, isLast: true },
]; // prettier-ignore

export const ways = ["plain", "tls", "proxy"] as const;
export type Way = (typeof ways)[number];
/** `behind`: hits come in the same bytes, before and after. `after`: a hit was answered on the connection. */
export const places = ["behind", "after"] as const;
export type Place = (typeof places)[number];

type Due = Pick<Kind, "method" | "status" | "body" | "uri" | "continues">;

/** One worker for each way, before one origin. */
export class HandOverStage implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();
  readonly #edges = new Map<Way, { readonly edge: Edge; readonly port: number }>();

  static async open(lane = true): Promise<HandOverStage> {
    const stage = new HandOverStage();
    const origin = stage.#stack.use(await openEcho());
    for (const way of ways) {
      const proxied = { trusted: ["127.0.0.1"], proxyProtocol: "required" } as const;
      const edge = stage.#stack.use(new Edge({ lane, ...(way === "proxy" && proxied) }));
      await edge.listen();
      const port = way === "tls" ? await edge.listenSecure() : edge.port;
      const site = {
        backend: { urls: [origin.url], retries: 0 },
        compression: false,
        redirects: [{ from: "/old", to: "/new", status: 301 as const }],
      };
      edge.publish({ ...stateOf(1, site), certificates: tableOf(installed()) });
      stage.#edges.set(way, { edge, port });
      await stage.#warm(way);
    }
    return stage;
  }

  /** How often an answer needed no waiting. */
  get quick(): number {
    return [...this.#edges.values()].reduce((sum, { edge }) => sum + edge.quick.answer, 0);
  }

  async #warm(way: Way): Promise<void> {
    using visitor = await this.#visit(way);
    const targets = ["/hit/a", "/hit/b", "/hit/c", "/hit/x"];
    for (const [no, target] of targets.entries()) {
      visitor.write(get(target), ["GET"]);
      await visitor.final(no + 1);
    }
    const { edge } = this.#at(way);
    while (edge.records.length < targets.length) await turn();
    edge.records.splice(0);
  }

  #at(way: Way): { readonly edge: Edge; readonly port: number } {
    const found = this.#edges.get(way);
    if (found === undefined) throw new TypeError(`no edge for ${way}`);
    return found;
  }

  async #visit(way: Way): Promise<RawVisitor> {
    const { port } = this.#at(way);
    if (way === "proxy") return RawVisitor.open({ port, preface: proxyV1("192.0.2.9") });
    if (way === "plain") return RawVisitor.open({ port });
    return RawVisitor.open({ port, secure: { servername: host, ca, ALPNProtocols: ["http/1.1"] } });
  }

  /** Throws where an answer or a record is another one than is due. `cuts`: places in the bytes of the kind. */
  async play(kind: Kind, way: Way, place: Place, cuts: readonly number[]): Promise<void> {
    const { edge } = this.#at(way);
    using visitor = await this.#visit(way);
    const due: Due[] = [];
    const hit = (name: string): string => {
      due.push({ method: "GET", status: 200, body: `GET /hit/${name} ` });
      return get(`/hit/${name}`);
    };
    if (place === "after") {
      visitor.write(hit("a"), ["GET"]);
      await visitor.final(1);
    }
    const before = place === "behind" ? hit("a") + hit("b") : "";
    due.push(kind);
    const isLast = kind.isLast === true;
    const after = get("/hit/c");
    if (!isLast) hit("c");
    const methods = due.slice(place === "after" ? 1 : 0).map(({ method }) => method);
    if (isLast) methods.push("GET");
    // What follows comes with the last piece.
    await this.#write(visitor, before, kind.bytes, after, cuts, methods);
    await visitor.final(due.length);
    if (isLast) await visitor.closed();
    if (visitor.fault !== undefined) throw new Error(visitor.fault);
    this.#compare(visitor, due, isLast);
    await this.#compareRecords(edge, due);
  }

  async #write(
    visitor: RawVisitor,
    before: string,
    bytes: string,
    after: string,
    cuts: readonly number[],
    methods: readonly string[],
  ): Promise<void> {
    const text = before + bytes + after;
    const ends = [...cuts.map((cut) => before.length + cut), text.length];
    let from = 0;
    for (const [no, to] of ends.entries()) {
      visitor.write(text.slice(from, to), no === 0 ? methods : []);
      // Long enough for a read of its own, as a rule.
      for (let turns = 0; no + 1 < ends.length && turns < 3; turns++) await turn();
      from = to;
    }
  }

  #compare(visitor: RawVisitor, due: readonly Due[], isLast: boolean): void {
    const wanted = due.flatMap(({ status, continues, body }) => [
      ...(continues === true ? [{ status: 100, body: "" }] : []),
      { status, body },
    ]);
    const got = visitor.answers;
    const said = got.map(({ status, body }) => `${status} ${body.slice(0, 60)}`).join(" | ");
    if (got.length !== wanted.length) throw new Error(`${got.length} answers: ${said}`);
    for (const [no, { status, body }] of wanted.entries()) {
      if (got[no]?.status !== status) throw new Error(`answer ${no + 1} is not ${status}: ${said}`);
      if (body !== undefined && got[no]?.body !== body)
        throw new Error(`answer ${no + 1} does not say ${JSON.stringify(body)}: ${said}`);
    }
    const last = got.findIndex(({ isLast: ends }) => ends);
    if (last !== (isLast ? got.length - 1 : -1))
      throw new Error(`the connection is said to end with answer ${last + 1}: ${said}`);
  }

  async #compareRecords({ records }: Edge, due: readonly Due[]): Promise<void> {
    const end = performance.now() + 10_000;
    while (records.length < due.length && performance.now() < end) await turn();
    await turn();
    const told = records.splice(0);
    const said = told.map(({ request_method: m, uri_path: uri, response_status: s }) => `${m} ${uri.slice(0, 60)} ${s}`); // prettier-ignore
    const wanted = due.map(({ method, uri, body, status }) => {
      const target = uri ?? body?.split(" ")[1];
      return { method, target, status };
    });
    // In any order: an answer's record is told when it has left.
    const rest = [...told];
    const isSame =
      told.length === wanted.length &&
      wanted.every(({ method, target, status }) => {
        const at = rest.findIndex(
          (one) =>
            one.response_status === status &&
            // Of what the parser refused nothing is known for certain.
            (target === undefined || (one.request_method === method && one.uri_path === target)),
        );
        if (at >= 0) rest.splice(at, 1);
        return at >= 0;
      });
    if (!isSame) throw new Error(`the records are ${said.join(" | ")}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** An origin that repeats what it was asked; what is below /hit/ may be stored for a day. */
async function openEcho(): Promise<Origin> {
  return openOrigin((request, response) => {
    const { method = "", url = "" } = request;
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = `${method} ${url} ${Buffer.concat(chunks).toString("latin1")}`;
      const isHit = url.startsWith("/hit/");
      response.setHeader("Cache-Control", isHit ? "max-age=86400" : "private, no-store");
      if (isHit) response.setHeader("ETag", '"1"');
      if (url === "/chunked") {
        response.write(body.slice(0, 3));
        response.end(body.slice(3));
        return;
      }
      response.setHeader("Content-Length", Buffer.byteLength(body, "latin1"));
      response.end(body, "latin1");
    });
  });
}

/** Every place to cut the bytes of a kind into two; of long ones some, and all near their ends. */
export function cutsOf({ bytes }: Kind): readonly number[] {
  const all = Array.from({ length: bytes.length - 1 }, (_, no) => no + 1);
  const nearMax = 120;
  return all.filter(
    (at) => at <= nearMax || at >= bytes.length - nearMax || at % 997 === 0 || at % 8_192 < 2,
  );
}
