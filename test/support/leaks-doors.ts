// The ways of the leak hunt into the accelerator: connections of HTTP/1.1 that several visitors share, as behind a proxy, with requests one behind another; and sessions of
// HTTP/2 over TLS.

import {
  connect,
  type ClientHttp2Session,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from "node:http2";
import { asHttp1, type LeakRequest } from "./leaks-visitors.ts";
import { RawVisitor } from "./raw-visitor.ts";

export type LeakAnswer = {
  readonly status: number;
  /** Names in lower case; several of one name as several. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
};

/** A connection takes so many requests: what it keeps of answers is bounded so. */
const requestsMax = 60;

/** A connection of HTTP/1.1 that is opened anew when it has ended. */
export class Http1Door implements Disposable {
  readonly #port: number;
  #visitor: RawVisitor | undefined;
  #answered = 0;

  constructor(port: number) {
    this.#port = port;
  }

  /** Asks in one piece; fewer answers come where the connection ends before. */
  async ask(requests: readonly LeakRequest[]): Promise<readonly LeakAnswer[]> {
    if (this.#visitor === undefined || this.#visitor.isOver || this.#answered > requestsMax) {
      this.#visitor?.[Symbol.dispose]();
      this.#visitor = await RawVisitor.open({ port: this.#port });
      this.#answered = 0;
    }
    const visitor = this.#visitor;
    visitor.write(
      requests.map(asHttp1).join(""),
      requests.map(({ method }) => method),
    );
    try {
      await visitor.final(this.#answered + requests.length);
      if (visitor.fault !== undefined) throw new Error(visitor.fault);
    } catch (error) {
      // What still comes there would be taken for the answers of others.
      visitor[Symbol.dispose]();
      this.#visitor = undefined;
      throw error;
    }
    const finals = visitor.answers.filter(({ status }) => status >= 200);
    const came = finals.slice(this.#answered);
    this.#answered += came.length;
    return came.map(({ status, head, body }) => ({
      status,
      fields: head
        .split("\r\n")
        .slice(1)
        .filter((line) => line !== "")
        .map((line) => {
          const colon = line.indexOf(":");
          return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
        }),
      body: Buffer.from(body, "latin1"),
    }));
  }

  [Symbol.dispose](): void {
    this.#visitor?.[Symbol.dispose]();
  }
}

const http2AnswerMs = 20_000;

/** One session of HTTP/2 for each name. */
export class Http2Door implements Disposable {
  readonly #port: number;
  readonly #ca: string;
  readonly #sessions = new Map<string, ClientHttp2Session>();

  constructor(port: number, ca: string) {
    this.#port = port;
    this.#ca = ca;
  }

  async ask(request: LeakRequest): Promise<LeakAnswer> {
    const session = this.#session(request.domain);
    const headers: Record<string, string | string[]> = {
      ":method": request.method,
      ":path": request.target,
      ":scheme": "https",
      ":authority": request.domain,
    };
    for (const [name, value] of request.lines)
      if (name !== "Host")
        headers[name.toLowerCase()] = name === "Cookie" ? value.split(/; /) : value;
    const { promise, resolve, reject } = Promise.withResolvers<LeakAnswer>();
    const stream = session.request(headers, { endStream: request.body === "" });
    stream.setTimeout(http2AnswerMs, () => stream.destroy(new Error("no answer")));
    let head: (IncomingHttpHeaders & IncomingHttpStatusHeader) | undefined;
    const chunks: Buffer[] = [];
    stream.on("response", (fields) => (head = fields));
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.once("error", reject);
    stream.once("close", () => {
      if (head === undefined) reject(new Error("the stream ended without an answer"));
      else
        resolve({
          status: head[":status"] ?? 0,
          fields: linesOf(head),
          body: Buffer.concat(chunks),
        });
    });
    if (request.body !== "") stream.end(request.body);
    return promise;
  }

  #session(domain: string): ClientHttp2Session {
    const known = this.#sessions.get(domain);
    if (known !== undefined && !known.closed && !known.destroyed) return known;
    const session = connect(`https://${domain}:${this.#port}`, {
      ca: this.#ca,
      servername: domain,
      lookup: (_, options, done) => {
        if (options.all === true) done(null, [{ address: "127.0.0.1", family: 4 }]);
        else done(null, "127.0.0.1", 4);
      },
    });
    session.on("error", () => {}); // Its streams tell.
    this.#sessions.set(domain, session);
    return session;
  }

  [Symbol.dispose](): void {
    for (const session of this.#sessions.values()) session.destroy();
  }
}

function linesOf(head: IncomingHttpHeaders): LeakAnswer["fields"] {
  return Object.entries(head).flatMap(([name, value]) => {
    if (name.startsWith(":") || value === undefined) return [];
    return (Array.isArray(value) ? value : [value]).map((one) => [name, one] as const);
  });
}
