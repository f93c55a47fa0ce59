// The memory of a body's pieces is given back when the system has them all, and not while one of them waits for the visitor.

import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { createClock } from "../../../../src/agent/accelerator/clock.ts";
import { sendBody } from "../../../../src/agent/accelerator/doors/answer.ts";
import { Connection, Exchange } from "../../../../src/agent/accelerator/doors/exchange.ts";
import { Http1Carrier } from "../../../../src/agent/accelerator/doors/http1-carrier.ts";
import { until } from "../../../support/until.ts";

const pieceBytes = 10_000;
const pieces = 3_000;

test("a visitor who reads nothing for a while keeps them", async () => {
  let given = 0;
  let givenBack = 0;
  const body = {
    async *[Symbol.asyncIterator]() {
      for (; given < pieces; given++) yield Buffer.alloc(pieceBytes);
    },
    giveBack: () => void (givenBack = given + 1),
  };
  let sending: Promise<void> | undefined;
  const server = createServer((request, response) => {
    const { socket } = request;
    const arrival = { socket, peer: undefined, port: undefined, headerBytes: 0 };
    const connection = new Connection(1, arrival);
    const carrier = new Http1Carrier(request, response, connection);
    const options = { clock: createClock(), awaitsContinue: false, onEnd: () => undefined };
    response.setHeader("Content-Length", pieces * pieceBytes);
    sending = sendBody(new Exchange(carrier, connection, options), body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  const socket = connect({ port, host: "127.0.0.1" });
  socket.pause();
  socket.write("GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
  let before = -1;
  await until("the system to be full", async () => {
    before = given;
    await sleep(100);
    return given > 0 && given === before;
  });
  // Some pieces wait in the program behind those that the system has.
  expect(given).toBeLessThan(pieces);
  expect(givenBack).toBeGreaterThan(0);
  expect(givenBack).toBeLessThan(given);
  let bytes = 0;
  socket.on("data", (part: Buffer) => void (bytes += part.length));
  socket.resume();
  await once(socket, "close");
  await sending;
  expect(bytes).toBeGreaterThan(pieces * pieceBytes);
  expect(givenBack).toBeGreaterThan(pieces - 10);
  server.close();
});
