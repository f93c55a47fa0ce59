// A visitor that asks for a tunnel and resets the connection: node no longer listens to such a socket, and nobody else is harmed.

import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { openEdge, openOrigin, raw } from "../edge.ts";

test("a connection that is reset after CONNECT ends nothing but itself", async () => {
  await using origin = await openOrigin((request, response) => {
    request.resume().once("end", () => response.end("from the origin"));
  });
  await using edge = await openEdge({ site: { backend: { urls: [origin.url], retries: 0 } } });
  for (let no = 0; no < 20; no++) {
    const socket = connect(edge.port, "127.0.0.1");
    await once(socket, "connect");
    socket.write(
      `CONNECT www.example.com:443 HTTP/1.1\r\nHost: www.example.com\r\n\r\n${"x".repeat(no * 1_000)}`,
    );
    if (no % 2 === 0) await once(socket, "data");
    socket.on("error", () => undefined);
    socket.resetAndDestroy();
    await once(socket, "close");
    const answer = await raw(
      edge,
      "GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n",
    );
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
  }
});
