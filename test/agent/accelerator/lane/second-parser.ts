// A second parser beside node's: nginx as a process, which passes on what it has read of pipelined heads. A sink behind it writes down what arrives, and answers with
// it; so each answer says how nginx read its request, and one answer too few or too many that it read a request elsewhere.

import { createServer, type Socket } from "node:net";
import { once } from "node:events";
import type { PlainHead } from "../../../../src/agent/accelerator/lane/head-scanner.ts";
import { freePorts } from "../../../support/free-ports.ts";
import { sayingOf, startProxy } from "../../../support/proxy-program.ts";
import { RawVisitor } from "../../../support/raw-visitor.ts";
import type { Taken } from "./head-fuzz.ts";

export const hasNginx = sayingOf("nginx", "-v") !== undefined;

/** Heads of one connection. */
const batchMax = 250;

/** Nothing is left out or normalized that nginx can be told to leave. */
const configOf = (port: number, sink: number): string => `
daemon off;
error_log stderr crit;
pid nginx.pid;
worker_processes 1;
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
  ignore_invalid_headers off;
  underscores_in_headers on;
  merge_slashes off;
  large_client_header_buffers 8 16k;
  keepalive_requests 100000000;
  keepalive_timeout 60s;
  upstream sink { server 127.0.0.1:${sink}; keepalive 64; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://sink;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header Connection "";
      proxy_set_header X-Seen-Version $server_protocol;
      proxy_set_header X-Seen-Connection $http_connection;
      proxy_set_header X-Seen-Length $content_length;
    }
  }
}
`;

export type SecondTotals = { read: number; refused: number };

export class SecondParser implements AsyncDisposable {
  readonly #stack: AsyncDisposableStack;
  readonly #port: number;

  private constructor(stack: AsyncDisposableStack, port: number) {
    this.#stack = stack;
    this.#port = port;
  }

  static async open(): Promise<SecondParser> {
    const stack = new AsyncDisposableStack();
    const sink = createServer({ noDelay: true }, answerAsSink);
    sink.listen(0, "127.0.0.1");
    await once(sink, "listening");
    stack.defer(() => void sink.close());
    const address = sink.address();
    if (address === null || typeof address === "string") throw new TypeError("no port");
    const [port = 0] = await freePorts(1);
    stack.use(
      await startProxy(
        [port],
        () => configOf(port, address.port),
        (dir, path) => ["nginx", "-p", dir, "-e", "stderr", "-c", path],
      ),
    );
    return new SecondParser(stack, port);
  }

  /** Throws where nginx reads one of the heads otherwise. It may refuse one: then nobody is misled, and the connection ends. */
  async compare(taken: readonly Taken[], totals: SecondTotals): Promise<void> {
    let from = 0;
    while (from < taken.length) {
      const last = taken.findIndex(({ found }, no) => no >= from && found.said.isLast);
      const to = Math.min(from + batchMax, taken.length, last < 0 ? Infinity : last + 1);
      from += await this.#ask(taken.slice(from, to), totals);
    }
  }

  /** Returns how many of the heads were answered. */
  async #ask(taken: readonly Taken[], totals: SecondTotals): Promise<number> {
    using visitor = await RawVisitor.open({ port: this.#port });
    const texts = taken.map(({ bytes, found }) => bytes.toString("latin1", 0, found.end));
    visitor.write(texts.join(""), taken.map(({ found }) => found.method)); // prettier-ignore
    await visitor.final(taken.length);
    if (visitor.fault !== undefined) throw new Error(`${visitor.fault} for ${texts[0]}`);
    for (const [no, { status, head, body, isLast }] of visitor.answers.entries()) {
      const [one, text] = [taken[no], texts[no]];
      if (one === undefined) throw new Error("more answers than requests");
      if (status !== 200) {
        if (status !== 400) throw new Error(`nginx answers ${status}: ${JSON.stringify(text)}`);
        totals.refused++;
        return no + 1;
      }
      totals.read++;
      const why = otherwise(one.found, said(head, body), isLast);
      if (why !== undefined) throw new Error(`nginx reads ${why}: ${JSON.stringify(text)}`);
    }
    return visitor.answers.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** A HEAD is told in a field, for it has no body. */
function said(head: string, body: string): readonly string[] {
  const inHead = /^x-read: (.*)\r$/im.exec(head)?.[1];
  const text = inHead === undefined ? body : decodeURIComponent(inHead);
  return text.split("\r\n");
}

/** Says what is not as the scanner has it. Blanks around a value are no part of it (RFC 9110 §5.5). */
function otherwise(
  found: PlainHead,
  lines: readonly string[],
  isLast: boolean,
): string | undefined {
  const [line, ...fields] = lines.filter((one) => one !== "");
  const trimmed = fields.map((field) => {
    const colon = field.indexOf(":");
    return `${field.slice(0, colon)}: ${field.slice(colon + 1).replaceAll(/^[ \t]+|[ \t]+$/g, "")}`;
  });
  if (line !== `${found.method} ${found.url} HTTP/1.1`) return line ?? "nothing";
  const own = ["Host", "X-Seen-Version", "X-Seen-Connection", "X-Seen-Length"];
  const ofNginx = (name: string): string | undefined =>
    trimmed.find((field) => field.startsWith(`${name}: `))?.slice(name.length + 2);
  const rest = trimmed.filter((field) => !own.some((name) => field.startsWith(`${name}: `)));
  const lower = (name: string): boolean => name === "host" || name === "connection";
  const due = found.fields.filter(([name]) => !lower(name.toLowerCase()));
  const wanted = due.map(([name, value]) => `${name}: ${value}`);
  // Fields without a value are passed on, too.
  if (JSON.stringify(rest) !== JSON.stringify(wanted)) return `the fields ${JSON.stringify(rest)}`;
  if (ofNginx("X-Seen-Version") !== "HTTP/1.1") return `version ${ofNginx("X-Seen-Version")}`;
  if (ofNginx("X-Seen-Length") !== undefined) return "a length";
  if (ofNginx("Host") !== found.said.host) return `the host ${ofNginx("Host")}`;
  return isLast === found.said.isLast ? undefined : "the end of the connection otherwise";
}

/** What nginx sends is well-formed: a head and no body. */
function answerAsSink(socket: Socket): void {
  let text = "";
  socket.setEncoding("latin1");
  socket.on("error", () => {});
  socket.on("data", (chunk: string) => {
    text += chunk;
    for (let end = text.indexOf("\r\n\r\n"); end >= 0; end = text.indexOf("\r\n\r\n")) {
      const head = text.slice(0, end);
      text = text.slice(end + 4);
      const isHead = head.startsWith("HEAD ");
      const inHead = isHead ? `X-Read: ${encodeURIComponent(head)}\r\n` : "";
      const body = isHead ? "" : head;
      const length = isHead ? 0 : body.length;
      socket.write(
        `HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n${inHead}\r\n${body}`,
        "latin1",
      );
    }
  });
}
