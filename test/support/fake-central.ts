// A central that can be told to misbehave: token, journal with valid chains, snapshot, receipts, reports, blobs over real HTTP, and the channel over a real WebSocket.

import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket, WebSocketServer } from "ws";
import { listenHttp, readBody } from "../../src/base/http-listener.ts";
import type { Name16, Secret16 } from "../../src/core/ids.ts";
import { chainStart } from "../../src/core/journal/journal-chain.ts";
import {
  decodeAgentMessage,
  type AgentMessage,
  type CentralMessage,
  type Hello,
  type Report,
} from "../../src/wire/channel.ts";
import type { JournalEntry } from "../../src/wire/journal.ts";
import { centralTakes, takesHeader, type Position } from "../../src/wire/position.ts";
import { decodeReceiptBatch, type Receipt } from "../../src/wire/receipt.ts";
import type { Snapshot } from "../../src/wire/snapshot.ts";
import type { AgentApiError } from "../../src/wire/token.ts";
import { noFaults, type Faults } from "./fake-faults.ts";
import { FakeJournal } from "./fake-journal.ts";

export const name16 = "00112233445566aa" as Name16;
export const secret16 = "00112233445566778899aabbccddeeff" as Secret16;

export class FakeCentral implements AsyncDisposable {
  readonly faults: Faults = { ...noFaults };
  readonly receipts: Receipt[] = [];
  /** Told beside receipts, in the order of their arrival. */
  readonly positions: (Position | undefined)[] = [];
  readonly reports: Report[] = [];
  readonly progress: AgentMessage[] = [];
  readonly hellos: Hello[] = [];
  readonly closes: { code: number; reason: string }[] = [];
  readonly blobs = new Map<string, Buffer>();
  /** `METHOD path?query` of every request, in order. */
  readonly requests: string[] = [];
  /** When each of them came. */
  readonly requestedMs: number[] = [];
  readonly headers: IncomingMessage["headers"][] = [];
  pings = 0;
  tokensGiven = 0;
  deploymentSiteId = 7;
  journal = new FakeJournal();
  /** What the snapshot tells beside its position. */
  state: Partial<Snapshot> = {};
  url = "";
  readonly #sockets = new Set<WebSocket>();
  readonly #tokens = new Map<string, number>();
  readonly #waiting = new Set<() => void>();
  #reportsHeld: Promise<number> | undefined;
  readonly #upgrades = new WebSocketServer({ noServer: true });
  #listener: AsyncDisposable | undefined;

  /** `before`: a central that has ended, whose store this one has. */
  static async start(port = 0, before?: FakeCentral): Promise<FakeCentral> {
    const central = new FakeCentral();
    if (before !== undefined) central.journal = before.journal;
    central.#upgrades.on("headers", (headers) => {
      if (!central.faults.old) headers.push(`${takesHeader}: ${centralTakes}`);
    });
    const listener = await listenHttp(
      (request, response) => void central.#answer(request, response),
      { host: "127.0.0.1", port },
      { graceMs: 50 },
    );
    listener.server.on("upgrade", (request, socket, head) =>
      central.#upgrade(request, socket, head),
    );
    central.#listener = listener;
    central.url = `http://127.0.0.1:${listener.port}`;
    return central;
  }

  get channels(): number {
    return this.#sockets.size;
  }

  append(kind: string, body: Record<string, unknown>): JournalEntry {
    const entry = this.journal.append(kind, body);
    for (const wake of this.#waiting) wake();
    if (!this.faults.withholdEntries && !this.faults.wedged)
      this.say({ type: "entries", entries: [entry] });
    return entry;
  }

  /** Says something on every channel. */
  say(message: CentralMessage | Record<string, unknown>): void {
    for (const socket of this.#sockets) socket.send(JSON.stringify(message));
  }

  /** Reports by request wait until the test says how they are answered; those behind are answered as usual. */
  holdReports(): (status: 204 | 503) => void {
    const { promise, resolve } = Promise.withResolvers<number>();
    this.#reportsHeld = promise;
    return (status) => {
      this.#reportsHeld = undefined;
      resolve(status);
    };
  }

  /** Closes every channel as central does whose tokens of the site are revoked. */
  revoke(): void {
    this.#tokens.clear();
    for (const socket of this.#sockets) socket.close(4001, "the credentials were revoked");
  }

  dropChannels(): void {
    for (const socket of this.#sockets) socket.terminate();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.dropChannels();
    for (const wake of this.#waiting) wake();
    await this.#listener?.[Symbol.asyncDispose]();
  }

  #note(line: string): void {
    this.requests.push(line);
    this.requestedMs.push(performance.now());
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#note(`${request.method} ${request.url}`);
    if (!this.faults.old) response.setHeader(takesHeader, centralTakes);
    this.headers.push(request.headers);
    if (this.faults.delayMs > 0) await sleep(this.faults.delayMs);
    const read = await readBody(request, 16 * 2 ** 20);
    const body = read.ok ? read.body : Buffer.alloc(0);
    if (this.faults.cut) {
      response.writeHead(200, { "content-length": 1000 }).write("{");
      setTimeout(() => response.destroy(), 5);
      return;
    }
    const url = new URL(request.url ?? "/", this.url);
    const refusal = this.#refusal(request, url.pathname);
    if (refusal !== undefined) return tell(response, 401, refusalBody(refusal));
    const { pathname } = url;
    if (pathname.endsWith("/token")) return this.#token(response);
    if (pathname.endsWith("/journal")) return this.#page(url.searchParams, response);
    if (pathname.endsWith("/snapshot")) return this.#snapshot(response);
    if (pathname.endsWith("/receipts")) return this.#postedReceipts(body, response);
    if (pathname.endsWith("/reports")) {
      this.reports.push(JSON.parse(body.toString("utf8")) as Report);
      const status = (await this.#reportsHeld) ?? 204;
      return tell(response, status, status === 204 ? undefined : refusalBody("unavailable"));
    }
    if (pathname.endsWith("/blobs/missing")) {
      const { sha256 } = JSON.parse(body.toString("utf8")) as { sha256: string[] };
      return tell(response, 200, { missing: sha256.filter((digest) => !this.blobs.has(digest)) });
    }
    if (pathname.includes("/blobs/")) return this.#blob(request, pathname, body, response);
    tell(response, 404, refusalBody("not_found"));
  }

  /** Nobody, or a token that has ended. */
  #refusal(request: IncomingMessage, pathname: string): AgentApiError["code"] | undefined {
    if (this.faults.refuse !== undefined) return this.faults.refuse;
    const [scheme, credentials = ""] = (request.headers.authorization ?? "").split(" ");
    if (pathname.endsWith("/token")) {
      const right = Buffer.from(`${name16}:${secret16}`).toString("base64");
      return scheme === "Basic" && credentials === right ? undefined : "wrong_secret";
    }
    const calls = this.#tokens.get(credentials);
    if (scheme !== "Bearer" || calls === undefined || calls >= this.faults.tokenCalls)
      return "expired_token";
    this.#tokens.set(credentials, calls + 1);
    return undefined;
  }

  #token(response: ServerResponse): void {
    this.tokensGiven += 1;
    const token = randomBytes(16).toString("hex");
    this.#tokens.set(token, 0);
    tell(response, 200, {
      access_token: token,
      token_type: "Bearer",
      expires_in: 3600,
      deployment_site_id: this.deploymentSiteId,
      epoch: this.journal.epoch,
    });
  }

  async #page(query: URLSearchParams, response: ServerResponse): Promise<void> {
    const after = Number(query.get("after"));
    const waitMs = this.faults.impatient ? 0 : Number(query.get("wait") ?? 0) * 1000;
    const fits = (): boolean =>
      this.journal.fits(query.get("epoch"), after, query.get("chain") ?? chainStart);
    if (waitMs > 0 && fits() && this.journal.after(after).length === 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.add(resolve);
      const timer = setTimeout(resolve, waitMs);
      await promise;
      clearTimeout(timer);
      this.#waiting.delete(resolve);
    }
    tell(response, 200, {
      epoch: this.journal.epoch,
      head_seq: this.journal.head.seq,
      resync: !fits(),
      entries: fits() ? this.journal.after(after) : [],
    });
  }

  #snapshot(response: ServerResponse): void {
    if (this.faults.failSnapshots-- > 0) return tell(response, 503, refusalBody("unavailable"));
    this.faults.failSnapshots = 0;
    tell(response, 200, {
      epoch: this.journal.epoch,
      seq: this.journal.head.seq,
      chain: this.journal.head.chain,
      domains: { domains: [] },
      policy: { domains: [] },
      viewsets: [],
      bots: [],
      keys: { keys: [] },
      certificates: { certificates: [] },
      vault_entries: { keys: null, certificates: null },
      imports: [],
      ...this.state,
    });
  }

  #postedReceipts(body: Buffer, response: ServerResponse): void {
    const decoded = decodeReceiptBatch(JSON.parse(body.toString("utf8")));
    if (!decoded.ok) throw new Error(`the agent posted ${body.toString("utf8")}`);
    const { receipts, position } = decoded.value;
    this.receipts.push(...receipts);
    this.positions.push(position);
    tell(response, 200, { acks: receipts.map(({ seq, phase }) => ({ seq, phase })) });
  }

  #blob(request: IncomingMessage, pathname: string, body: Buffer, response: ServerResponse): void {
    const digest = pathname.split("/").at(-1) ?? "";
    if (request.method === "PUT") {
      if (createHash("sha256").update(body).digest("hex") !== digest)
        return tell(response, 400, refusalBody("invalid"));
      this.blobs.set(digest, body);
      return tell(response, 204);
    }
    const blob = this.blobs.get(digest);
    if (blob === undefined) return tell(response, 404, refusalBody("not_found"));
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
    const range = { "content-range": `bytes ${from}-${blob.length - 1}/${blob.length}` };
    response
      .writeHead(from > 0 ? 206 : 200, {
        "content-length": blob.length - from,
        ...(from > 0 ? range : {}),
      })
      .end(blob.subarray(from));
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#note(`UPGRADE ${request.url}`);
    const { upgradeStatus } = this.faults;
    const refusal = this.#refusal(request, "");
    if (upgradeStatus === undefined && refusal === undefined) {
      this.#upgrades.handleUpgrade(request, socket, head, (channel) => this.#talk(channel));
      return;
    }
    const body =
      upgradeStatus === undefined ? JSON.stringify(refusalBody(refusal ?? "invalid")) : "no";
    const { length } = body;
    socket.end(
      `HTTP/1.1 ${upgradeStatus ?? 401} No\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n${body}`,
    );
  }

  #talk(channel: WebSocket): void {
    this.#sockets.add(channel);
    channel.on("close", (code, reason) => {
      this.#sockets.delete(channel);
      this.closes.push({ code, reason: reason.toString("utf8") });
    });
    channel.on("message", (data) => {
      // Texts arrive as one buffer.
      const text = (data as Buffer).toString("utf8");
      const decoded = decodeAgentMessage(JSON.parse(text));
      if (!decoded.ok) throw new Error(`the agent said ${text}`);
      this.#heard(channel, decoded.value);
    });
  }

  #heardReport(report: Report, send: (answer: CentralMessage) => void): void {
    this.reports.push(report);
    if (report.counted === undefined) return;
    if (this.faults.loseAcks > 0) this.faults.loseAcks -= 1;
    else send({ type: "report_ack", counted: report.counted });
  }

  #heard(channel: WebSocket, message: AgentMessage): void {
    const send = (answer: CentralMessage): void => channel.send(JSON.stringify(answer));
    const { faults } = this;
    if (message.type === "hello") {
      this.hellos.push(message);
      const fits = this.journal.fits(message.epoch, message.applied_seq, message.chain);
      send({ type: "welcome", epoch: this.journal.epoch, head_seq: this.journal.head.seq });
      if (faults.wedged || faults.withholdEntries) return;
      if (fits) send({ type: "entries", entries: [...this.journal.after(message.applied_seq)] });
      else send({ type: "resync", reason: "the position is not ours" });
      return;
    }
    if (faults.wedged) return;
    if (message.type === "ping") this.pings += 1;
    if (message.type === "ping" && !faults.losePongs)
      send({ type: "pong", n: message.n, ...(faults.holding && { held: true }) });
    if (message.type === "report") this.#heardReport(message.report, send);
    if (message.type === "progress") this.progress.push(message);
    if (message.type !== "receipt") return;
    const { seq, phase } = message.receipt;
    this.receipts.push(message.receipt);
    this.positions.push(message.position);
    if (faults.loseAcks > 0) faults.loseAcks -= 1;
    else send({ type: "receipt_ack", seq, phase });
  }
}

function refusalBody(code: AgentApiError["code"]): AgentApiError {
  return { code, message: `as told: ${code}` };
}

function tell(response: ServerResponse, status: number, body?: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}
