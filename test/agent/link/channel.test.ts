// One channel of the agent's, against a bare WebSocket server: how large what central says may be.

import { once } from "node:events";
import { expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { runChannel, type ChannelEnd } from "../../../src/agent/link/channel.ts";
import { chainStart } from "../../../src/core/journal/journal-chain.ts";
import type { CentralMessage, Hello } from "../../../src/wire/channel.ts";

const hello: Hello = {
  type: "hello",
  agent_version: "1.0.0",
  instance_id: "instance-1",
  boot_id: "boot-1",
  epoch: null,
  applied_seq: 0,
  chain: chainStart,
  edge: null,
};
const welcome = { type: "welcome", epoch: "0123456789abcdef", head_seq: 1 } as const;
const drain = { type: "drain", reconnect_after_ms: 7 } as const;
const ack = (seq: number) => ({ type: "receipt_ack", seq, phase: "applied" }) as const;
const text = (message: CentralMessage, bytes = 0): string => JSON.stringify(message).padEnd(bytes);

/** What the agent understood of these, how its channel ended, and the code with which it closed. */
async function heardOf(said: readonly string[]) {
  await using server = new Server();
  const messages: unknown[] = [];
  const code = server.says(said);
  const end: ChannelEnd = await runChannel(
    {
      url: await server.url(),
      ca: undefined,
      agent: undefined,
      token: "token",
      hello,
      pingIntervalMs: 60_000,
      welcomeMs: 60_000,
      stop: new AbortController().signal,
    },
    {
      heard: () => {},
      held: () => {},
      welcome: (message) => void messages.push(message),
      message: (message) => void messages.push(message),
    },
  );
  return { messages, end, code: await code };
}

class Server {
  readonly #server = new WebSocketServer({ host: "127.0.0.1", port: 0 });

  async url(): Promise<URL> {
    if (this.#server.address() === null) await once(this.#server, "listening");
    return new URL(`ws://127.0.0.1:${Object(this.#server.address()).port}`);
  }

  /** To the first that connects, once it has said hello. */
  async says(said: readonly string[]): Promise<number> {
    const [socket] = await once(this.#server, "connection");
    const closed = once(socket, "close");
    await once(socket, "message");
    for (const one of said) socket.send(one);
    const [code] = await closed;
    return Number(code);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#server.clients) socket.terminate();
    this.#server.close();
    await once(this.#server, "close");
  }
}

test("a message of 8 MiB is understood", async () => {
  const said = [text(welcome), text(ack(1), 8 * 2 ** 20), text(drain)];
  const { messages, end } = await heardOf(said);
  expect(messages).toEqual([welcome, ack(1)]);
  expect(end).toEqual({ kind: "drained", reconnectAfterMs: 7 });
});

test("one byte more ends the channel, unread", async () => {
  const said = [text(welcome), text(ack(1), 8 * 2 ** 20 + 1), text(drain)];
  const { messages, end, code } = await heardOf(said);
  expect(messages).toEqual([welcome]);
  expect(end).toMatchObject({ kind: "ended", error: { code: "CENTRAL_UNREACHABLE" } });
  expect(code).toBe(1009);
});
