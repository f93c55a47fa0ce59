// Interim answers of the origin (102, 103) reach visitors of HTTP/1.1 and HTTP/2; and streamed answers reach them piece by piece.

import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { until } from "../../../support/until.ts";
import { host, raw } from "../edge.ts";
import { visitByHttp2 } from "../secure-clients.ts";
import { openSecureStage } from "../secure-stage.ts";
import { openStage, type Handler } from "../stage.ts";

const links = ["</a.css>; rel=preload; as=style", "</b.js>; rel=preload; as=script"];

const hints =
  (cacheControl: string): Handler =>
  (_request, response) => {
    const { socket } = response;
    socket?.write("HTTP/1.1 102 Processing\r\n\r\n");
    socket?.write("HTTP/1.1 104 Whatever\r\nX: 1\r\n\r\n");
    const said = links.map((link) => `Link: ${link}\r\n`).join("");
    const dropped = "Keep-Alive: 5\r\nX-Accel-Decision: 1\r\nX-Hint: ja\xdf\r\n";
    socket?.write(`HTTP/1.1 103 Early Hints\r\n${said}${dropped}\r\n`, "latin1");
    response.writeHead(200, { "Cache-Control": cacheControl, "Content-Length": 2 });
    response.end("ok");
  };

const get = (version: string): string =>
  `GET /p HTTP/${version}\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

test.each(["no-store", "max-age=60"])(
  "of an answer with %s, over HTTP/1.1",
  async (cacheControl) => {
    await using s = await openStage(hints(cacheControl));
    const answer = await raw(s.edge, get("1.1"));
    const [processing, early, final, body] = answer.split("\r\n\r\n");
    expect(processing).toBe("HTTP/1.1 102 Processing");
    expect(early?.split("\r\n")).toEqual([
      "HTTP/1.1 103 Early Hints",
      ...links.map((link) => `Link: ${link}`),
      "X-Hint: ja\xdf",
    ]);
    expect(final).toMatch(/^HTTP\/1\.1 200 /);
    expect(body).toBe("ok");
    await until("the record", () => s.edge.records.length === 1);
    expect(s.edge.records[0]).toMatchObject({ response_status: 200, bytes_sent: answer.length });
  },
);

test("a method that is passed on has them too, and HTTP/1.0 has none", async () => {
  await using s = await openStage(hints("no-store"));
  expect(await raw(s.edge, get("1.1").replace("GET", "DELETE"))).toMatch(/^HTTP\/1\.1 102 /);
  expect(await raw(s.edge, get("1.0"))).toMatch(/^HTTP\/1\.1 200 /);
});

test("a site that removes a field from its answers removes it from hints", async () => {
  const options = { site: { headers: { set: { "X-Hint": "ours" }, remove: ["link"] } } };
  await using s = await openSecureStage(hints("no-store"), options);
  const [, early] = (await raw(s.edge, get("1.1"))).split("\r\n\r\n");
  expect(early).toBe("HTTP/1.1 103 Early Hints");
});

test.each(["no-store", "max-age=60"])("of an answer with %s, over HTTP/2", async (cacheControl) => {
  await using s = await openSecureStage(hints(cacheControl));
  await using visitor = await visitByHttp2(s.port);
  const stream = visitor.begin({ ":path": "/p" });
  const interim: (readonly [unknown, unknown])[] = [];
  stream.on("headers", (head) => interim.push([head[":status"], head["link"]]));
  const [head] = (await once(stream, "response")) as [Record<string, unknown>];
  expect(interim).toEqual([
    [102, undefined],
    [103, links.join(", ")],
  ]);
  expect(head[":status"]).toBe(200);
});

test.each([
  ["passed on", "no-store"],
  ["that may be stored", "max-age=60"],
])("a streamed answer %s reaches a visitor of HTTP/1.1 byte by byte", async (_, cacheControl) => {
  let origin: ServerResponse | undefined;
  await using s = await openStage((_request, response) => {
    origin = response;
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": cacheControl });
    response.flushHeaders();
  });
  const socket = connect(s.edge.port, "127.0.0.1");
  let got = "";
  socket.setEncoding("latin1").on("data", (text: string) => (got += text));
  socket.write(get("1.1"));
  await until("the head before any byte of the body", () => got.includes("\r\n\r\n"));
  for (const byte of "data: a\n\n") {
    const before = got.length;
    origin?.write(byte);
    await until("the byte", () => got.length > before && got.endsWith(`1\r\n${byte}\r\n`));
  }
  origin?.end();
  await once(socket, "close");
  expect(got).toMatch(/\r\n0\r\n\r\n$/);
});

test.each(["no-store", "max-age=60"])(
  "a streamed answer with %s over HTTP/2",
  async (cacheControl) => {
    let origin: ServerResponse | undefined;
    await using s = await openSecureStage((_request, response) => {
      origin = response;
      response.writeHead(200, {
        "Content-Type": "text/event-stream",
        "Cache-Control": cacheControl,
      });
      response.flushHeaders();
    });
    await using visitor = await visitByHttp2(s.port);
    const stream = visitor.begin({ ":path": "/events" });
    await once(stream, "response");
    let got = "";
    stream.setEncoding("latin1").on("data", (text: string) => (got += text));
    for (const byte of "data: a\n\n") {
      const expected = got + byte;
      origin?.write(byte);
      await until("the byte", () => got === expected);
    }
    origin?.end();
    await once(stream, "end");
    expect(got).toBe("data: a\n\n");
  },
);
