// Clients that leave before they are answered: nothing of theirs stays with central.

import { getEventListeners } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { makeWorld } from "../../support/api-world.ts";
import { until } from "../../support/until.ts";
import { openApi } from "./api-harness.ts";

test("a client that leaves while it is found out who asks leaves no listener behind", async () => {
  await using api = await openApi();
  const { token } = await makeWorld(api, "leaver");
  const listeners = (): number => getEventListeners(api.stopping.signal, "abort").length;
  const before = listeners();
  const held = Promise.withResolvers<void>();
  let waiting = 0;
  let passed = 0;
  api.gate = async () => {
    waiting++;
    await held.promise;
    passed++;
  };
  const others = await api.connections();
  const sockets = Array.from({ length: 10 }, (): Socket => {
    const socket = connect(api.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(
      `GET /presentation-api/v1/domain/ HTTP/1.1\r\nhost: x\r\nauthorization: Token ${token}\r\n\r\n`,
    );
    return socket;
  });
  await until("they are being authenticated", () => waiting > 0);
  for (const socket of sockets) socket.destroy();
  await until("all are gone", async () => (await api.connections()) <= others);
  held.resolve();
  await until("their requests have ended", () => passed >= sockets.length);
  await until("nothing is left", () => listeners() === before);
  expect(listeners()).toBe(before);
});
