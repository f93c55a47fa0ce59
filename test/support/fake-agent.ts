// A small agent for tests of central: asks for a token, calls, holds a channel and keeps what it heard.

import { once } from "node:events";
import { WebSocket } from "ws";
import { chainStart } from "../../src/core/journal/journal-chain.ts";
import {
  decodeCentralMessage,
  type AgentMessage,
  type CentralMessage,
  type Report,
} from "../../src/wire/channel.ts";
import type { JournalEntry } from "../../src/wire/journal.ts";
import { takesHeader, type Position } from "../../src/wire/position.ts";
import type { Receipt } from "../../src/wire/receipt.ts";
import type { RequestRecord } from "../../src/wire/request-log.ts";
import { decodeTokenAnswer, type TokenAnswer } from "../../src/wire/token.ts";
import { until } from "./until.ts";

export type FakeAgent = {
  readonly token: TokenAnswer;
  /** A call with the token. */
  readonly call: (path: string, init?: RequestInit) => Promise<Response>;
  /** `takes`: the value of `accel-takes`; absent: as a release that does not send it. */
  readonly channel: (takes?: string) => Promise<FakeChannel>;
};

export async function askToken(
  url: string,
  name: string,
  secret: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`${url}/token`, {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(`${name}:${secret}`).toString("base64")}`,
      "content-type": "application/x-www-form-urlencoded",
      ...headers,
    },
    body: "grant_type=client_credentials",
  });
}

async function newToken(url: string, name: string, secret: string): Promise<TokenAnswer> {
  const decoded = decodeTokenAnswer(await (await askToken(url, name, secret)).json());
  if (!decoded.ok) throw new Error(`no token: ${JSON.stringify(decoded.errors)}`);
  return decoded.value;
}

/** `known`: a token that it has from elsewhere. */
export async function connectAgent(
  url: string,
  name: string,
  secret: string,
  known?: TokenAnswer,
): Promise<FakeAgent> {
  const token = known ?? (await newToken(url, name, secret));
  const authorization = `Bearer ${token.access_token}`;
  return {
    token,
    call: async (path, init = {}) => {
      const headers = new Headers(init.headers);
      headers.set("authorization", authorization);
      return fetch(url + path, { ...init, headers });
    },
    channel: async (takes) => {
      const socket = new WebSocket(`${url.replace("http", "ws")}/channel`, {
        headers: { authorization, ...(takes !== undefined && { [takesHeader]: takes }) },
      });
      const channel = new FakeChannel(socket);
      await once(socket, "open");
      return channel;
    },
  };
}

export class FakeChannel implements Disposable {
  readonly socket: WebSocket;
  readonly heard: CentralMessage[] = [];
  closed: { readonly code: number; readonly reason: string } | undefined;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data) => {
      const text = Buffer.isBuffer(data) ? data.toString("utf8") : "";
      const decoded = decodeCentralMessage(JSON.parse(text));
      if (!decoded.ok) throw new Error(`central said ${text}`);
      this.heard.push(decoded.value);
    });
    socket.on("close", (code, reason) => {
      this.closed = { code, reason: reason.toString() };
    });
  }

  say(message: AgentMessage): void {
    this.socket.send(JSON.stringify(message));
  }

  hello(
    epoch: string | null,
    seq = 0,
    chain: string = chainStart,
    instanceId = "instance-1",
    bootId = "b1",
  ): void {
    this.say({
      type: "hello",
      agent_version: "1.0.0",
      instance_id: instanceId,
      boot_id: bootId,
      epoch,
      applied_seq: seq,
      chain: chain as Extract<AgentMessage, { type: "hello" }>["chain"],
      edge: null,
    });
  }

  receipt(
    seq: number,
    phase: Receipt["phase"],
    detail: Receipt["detail"] = {},
    position?: Position,
  ): void {
    const receipt = { seq, phase, detail, took_ms: 1 };
    this.say({ type: "receipt", receipt, ...(position !== undefined && { position }) });
  }

  all<T extends CentralMessage["type"]>(type: T): Extract<CentralMessage, { type: T }>[] {
    return this.heard.filter(
      (message): message is Extract<CentralMessage, { type: T }> => message.type === type,
    );
  }

  async next<T extends CentralMessage["type"]>(
    type: T,
    no = 1,
  ): Promise<Extract<CentralMessage, { type: T }>> {
    return until(`${type} number ${no}`, () => this.all(type)[no - 1]);
  }

  /** What was pushed, in the order in which it came. */
  get entries(): readonly JournalEntry[] {
    return this.all("entries")
      .flatMap(({ entries }) => entries)
      .filter((item) => "kind" in item);
  }

  async close(): Promise<{ readonly code: number; readonly reason: string }> {
    return until("the channel's end", () => this.closed);
  }

  [Symbol.dispose](): void {
    this.socket.terminate();
  }
}

export function requestRecord(overrides: Partial<RequestRecord> = {}): RequestRecord {
  return {
    connection: 1,
    response_status: 200,
    request_method: "GET",
    uri_path: "/",
    backend_time: 0,
    when: 1_894_708_800.25,
    authority: "www.example.test",
    domain: "www.example.test",
    client_ip: "192.0.2.7",
    bytes_sent: 10,
    duration: 0.001,
    cache: "hit",
    verdict: "allow",
    bot: null,
    user_agent: "test",
    ...overrides,
  };
}

/** Lines of a batch, each of which tells its number by its path. */
export function batchText(firstSeq: number, lastSeq: number): string {
  let text = "";
  for (let seq = firstSeq; seq <= lastSeq; seq++)
    text += `${JSON.stringify(requestRecord({ uri_path: `/${seq}` }))}\n`;
  return text;
}

export function reportOf(instanceId: string, spooled: number): Report {
  return {
    instance_id: instanceId,
    spool: { accepted: 9, delivered: 9 - spooled, spooled, in_memory: 0, dropped: 0 },
    domains: [],
    warnings: [],
  };
}
