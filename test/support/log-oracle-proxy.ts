// Central as a bad network and a troubled server show it: what happens to batches of request records is told from outside, everything else passes but
// for the paths that are cut.
// It also is a witness: each mark that central acknowledged, whether or not the agent ever heard of it.

import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export type BatchFault =
  | { readonly kind: "none" }
  /** Central commits, and its answer goes nowhere. */
  | { readonly kind: "lost answer" }
  /** The agent's connection breaks; the batch reaches central some time later, behind its own repetition. */
  | { readonly kind: "late"; readonly delayMs: number }
  /** Central gets each batch twice. */
  | { readonly kind: "twice" }
  /** There and back take so long. */
  | { readonly kind: "slow"; readonly delayMs: number }
  /** Central never sees it. `bytesMin`: only batches of so many bytes. */
  | {
      readonly kind: "refused";
      readonly status: number;
      readonly retryAfterS?: number;
      readonly bytesMin?: number;
    };

type Answer = {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
};

const batchPath = "/agent-api/v1/request-logs";

export class BatchProxy implements AsyncDisposable {
  /** By lane: through where central said that it has it. */
  readonly acknowledged = new Map<string, number>();
  batches = 0;
  fault: BatchFault = { kind: "none" };
  /** How paths begin that get 503, whatever is asked there. */
  readonly cut = new Set<string>();
  readonly #server = createServer((incoming, response) => {
    this.#handle(incoming, response).catch(() => response.destroy());
  });
  readonly #port: number;
  readonly #tunnels = new Set<Socket>();

  private constructor(port: number) {
    this.#port = port;
    this.#server.on("upgrade", (incoming, socket: Socket, head: Buffer) =>
      this.#tunnel(incoming, socket, head),
    );
  }

  /** To a port of this host. */
  static async open(port: number): Promise<BatchProxy> {
    const proxy = new BatchProxy(port);
    const { promise, resolve } = Promise.withResolvers<void>();
    proxy.#server.listen(0, "127.0.0.1", resolve);
    await promise;
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port; // Listening on TCP.
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = Promise.withResolvers<void>();
    this.#server.close(() => closed.resolve());
    for (const socket of this.#tunnels) socket.destroy();
    this.#server.closeAllConnections();
    await closed.promise;
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(Buffer.from(chunk as Uint8Array)); // No encoding is set.
    const body = Buffer.concat(chunks);
    const { fault } = this;
    if ([...this.cut].some((start) => incoming.url?.startsWith(start)))
      return reply(response, refusal({ kind: "refused", status: 503 }));
    const isBatch = incoming.url === batchPath;
    if (isBatch) this.batches++;
    if (!isBatch || fault.kind === "none") return reply(response, await this.#pass(incoming, body));
    switch (fault.kind) {
      case "lost answer":
        await this.#pass(incoming, body);
        response.destroy();
        return;
      case "late":
        response.destroy();
        await sleep(fault.delayMs);
        await this.#pass(incoming, body);
        return;
      case "twice":
        await this.#pass(incoming, body);
        return reply(response, await this.#pass(incoming, body));
      case "slow":
        await sleep(fault.delayMs / 2);
        const answer = await this.#pass(incoming, body);
        await sleep(fault.delayMs / 2);
        return reply(response, answer);
      case "refused":
        return reply(
          response,
          body.length >= (fault.bytesMin ?? 0) ? refusal(fault) : await this.#pass(incoming, body),
        );
      default:
        fault satisfies never;
    }
  }

  async #pass(incoming: IncomingMessage, body: Buffer): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const { method, url, headers } = incoming;
    const outgoing = httpRequest(
      { host: "127.0.0.1", port: this.#port, method, path: url, headers, agent: false },
      (answer) => {
        const parts: Buffer[] = [];
        answer.on("data", (part: Buffer) => parts.push(part));
        answer.on("error", reject);
        answer.on("end", () =>
          resolve({
            status: answer.statusCode ?? 0,
            headers: answer.headers,
            body: Buffer.concat(parts),
          }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
    const answer = await promise;
    if (url === batchPath && answer.status === 200) this.#witness(incoming, answer.body);
    return answer;
  }

  #witness({ headers }: IncomingMessage, body: Buffer): void {
    const lane = String(headers["accel-lane"]);
    const { committed_through: mark } = JSON.parse(body.toString()) as {
      committed_through: number; // Central's answer; the judge compares it.
    };
    this.acknowledged.set(lane, Math.max(mark, this.acknowledged.get(lane) ?? 0));
  }

  #tunnel(incoming: IncomingMessage, near: Socket, head: Buffer): void {
    const far = connect(this.#port, "127.0.0.1");
    for (const socket of [near, far]) {
      this.#tunnels.add(socket);
      socket.on("error", () => undefined);
      socket.once("close", () => {
        this.#tunnels.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    const { method, url, httpVersion, rawHeaders } = incoming;
    const fields = rawHeaders.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`));
    far.write(`${method} ${url} HTTP/${httpVersion}\r\n${fields.join("")}\r\n`);
    far.write(head);
    near.pipe(far).pipe(near);
  }
}

function refusal({ status, retryAfterS }: Extract<BatchFault, { kind: "refused" }>): Answer {
  return {
    status,
    headers: {
      "content-type": "application/json",
      ...(retryAfterS === undefined ? {} : { "retry-after": String(retryAfterS) }),
    },
    body: Buffer.from(JSON.stringify({ code: "unavailable", message: "made by a test" })),
  };
}

function reply(response: ServerResponse, { status, headers, body }: Answer): void {
  const { "transfer-encoding": _, ...kept } = headers;
  response.writeHead(status, { ...kept, "content-length": body.length });
  response.end(body);
}
