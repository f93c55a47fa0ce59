// Visitors of whom the judge knows everything: each request has a number in its path, claimed before it is sent, and is remembered with what its
// record must say.

import { Agent, request as httpRequest } from "node:http";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { browser } from "./edge.ts";

/** `expected…`: as the record must have it. Times are those of this process. */
export type Claim = {
  readonly id: number;
  /** The agent's start that it was sent to. */
  readonly run: number;
  readonly method: string;
  readonly expectedUri: string;
  readonly expectedUserAgent: string | null;
  readonly authority: string;
  readonly domain: string | null;
  readonly clientIp: string;
  readonly sentMs: number;
  socketNo: number;
  /** Undefined: nobody answered. */
  answer: ClaimAnswer | undefined;
  isEnded: boolean;
};
export type ClaimAnswer = {
  readonly status: number;
  readonly bodyBytes: number;
  readonly isHit: boolean;
  readonly atMs: number;
};

export type ProducerOptions = {
  readonly port: number;
  readonly domain: string;
  /** In [0, 1). */
  readonly random: () => number;
  readonly run: () => number;
  /** Claims are numbered from here. */
  readonly firstId?: number;
  readonly visitors?: number;
  /** Each visitor waits so long at most between two requests. */
  readonly pauseMsMax?: number;
};

const domainShare = 0.3;
const timeoutMs = 10_000;
const unansweredPauseMs = 150;
const uriCharsMax = 8_192; // What a record keeps of it.

export class Producer implements AsyncDisposable {
  readonly claims: Claim[] = [];
  readonly #options: ProducerOptions;
  readonly #stop = new AbortController();
  readonly #agent: Agent;
  readonly #running: readonly Promise<void>[];
  readonly #socketNos = new WeakMap<Socket, number>();
  #sockets = 0;
  #lastId: number;
  #gate: PromiseWithResolvers<void> | undefined;
  #inFlight = 0;

  constructor(options: ProducerOptions) {
    const { visitors = 6, firstId = 1 } = options;
    this.#lastId = firstId - 1;
    this.#options = options;
    this.#agent = new Agent({ keepAlive: true, maxSockets: visitors });
    this.#running = Array.from({ length: visitors }, async () => this.#visit());
  }

  /** Resolves when nothing is on its way; nobody begins until `resume`. */
  async pause(): Promise<void> {
    this.#gate ??= Promise.withResolvers<void>();
    while (this.#inFlight > 0) await sleep(5);
  }

  resume(): void {
    this.#gate?.resolve();
    this.#gate = undefined;
  }

  /** One request now, paused or not. */
  async send(more: Partial<Shape> = {}): Promise<Claim> {
    this.#inFlight++;
    try {
      return await this.#send({ ...this.#draw(), ...more });
    } finally {
      this.#inFlight--;
    }
  }

  /** What was judged is not kept. */
  takeClaims(): Claim[] {
    return this.claims.splice(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.resume();
    await Promise.all(this.#running);
    this.#agent.destroy();
  }

  async #visit(): Promise<void> {
    const { random, pauseMsMax = 30 } = this.#options;
    while (!this.#stop.signal.aborted) {
      await this.#gate?.promise;
      const claim = await this.send();
      await sleep(claim.answer === undefined ? unansweredPauseMs : random() * pauseMsMax);
    }
  }

  #draw(): Shape {
    const { random, domain } = this.#options;
    const isServed = random() < domainShare;
    return {
      method: random() < 0.1 ? "HEAD" : "GET",
      authority: isServed ? domain : `h${Math.floor(random() * 20)}.unknown.example`,
      domain: isServed ? domain : null,
      clientIp: `203.0.113.${Math.floor(random() * 256)}`,
      userAgent: random() < 0.1 ? "" : `${browser} ${pick(agentNoises, random())}`.trimEnd(),
      noise: pick(noises, random()),
    };
  }

  async #send(shape: Shape): Promise<Claim> {
    const { run, port } = this.#options;
    const { method, authority, clientIp, userAgent, noise } = shape;
    const id = ++this.#lastId;
    const uri = `/page/${id}${noise}`;
    const claim: Claim = {
      id,
      run: run(),
      method,
      expectedUri: uri.slice(0, uriCharsMax),
      ...(noise === refusedNoise ? expectedOfRefused : expectedOf(shape)),
      sentMs: Date.now(),
      socketNo: 0,
      answer: undefined,
      isEnded: false,
    };
    this.claims.push(claim);
    const { promise, resolve } = Promise.withResolvers<ClaimAnswer | undefined>();
    const outgoing = httpRequest({
      host: "127.0.0.1",
      port,
      path: asSent(uri),
      method,
      agent: this.#agent,
      timeout: timeoutMs,
      headers: {
        host: authority,
        "x-forwarded-for": clientIp,
        ...(userAgent === "" ? {} : { "user-agent": asSent(userAgent) }),
      },
    });
    outgoing.on("socket", (socket) => (claim.socketNo = this.#numberOf(socket)));
    outgoing.on("timeout", () => outgoing.destroy());
    outgoing.on("error", () => resolve(undefined));
    outgoing.on("close", () => resolve(undefined));
    outgoing.on("response", (response) => {
      let bodyBytes = 0;
      response.on("data", (chunk: Buffer) => (bodyBytes += chunk.length));
      response.on("error", () => resolve(undefined));
      response.on("end", () => {
        const isHit = String(response.headers["cache-status"]).includes("; hit");
        const status = response.statusCode ?? 0;
        resolve({ status, bodyBytes, isHit, atMs: Date.now() });
      });
    });
    outgoing.end();
    claim.answer = await promise;
    claim.isEnded = true;
    return claim;
  }

  #numberOf(socket: Socket): number {
    const known = this.#socketNos.get(socket) ?? ++this.#sockets;
    this.#socketNos.set(socket, known);
    return known;
  }
}

/** `userAgent` "": none is sent. `noise` follows the number in the path. */
type Shape = {
  readonly method: string;
  readonly authority: string;
  readonly domain: string | null;
  readonly clientIp: string;
  readonly userAgent: string;
  readonly noise: string;
};

/** No request line may have these bytes: the parser refuses the request, and knows little of it. */
const refusedNoise = "?q=grüße-🎈";
const expectedOfRefused = {
  expectedUserAgent: null,
  authority: "",
  domain: null,
  clientIp: "127.0.0.1",
};

function expectedOf({ userAgent, authority, domain, clientIp }: Shape) {
  const expectedUserAgent = userAgent === "" ? null : userAgent;
  return { expectedUserAgent, authority, domain, clientIp };
}

/** Short ones most often; one that is cut, UTF-8 as clients send it, quotes and what looks like a line of ours. */
const noises = [
  ...Array.from({ length: 12 }, () => ""),
  "?a=1&b=two",
  '?gap={"gap":{"from_seq":1}}',
  "?q=gr%C3%BC%C3%9Fe",
  refusedNoise,
  `?long=${"x".repeat(1_500)}`,
  `?cut=${"y".repeat(9_000)}`,
];
const agentNoises = ["", "", "", '"quoted\\"', "Grüße/1.0", "x".repeat(300)];

function pick<T>(list: readonly [T, ...T[]] | readonly T[], at: number): T {
  const found = list[Math.floor(at * list.length)];
  if (found === undefined) throw new Error("an empty list");
  return found;
}

/** Node takes text for the wire as one byte a character. */
function asSent(text: string): string {
  return Buffer.from(text).toString("latin1");
}
