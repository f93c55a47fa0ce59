// A request of HTTP/2 in the terms of HTTP/1.1.

import { expect, test } from "vitest";
import {
  headBytes,
  readHttp2Request,
  webSocketHead,
} from "../../../src/core/http/http2-request.ts";

const head = [":method", "GET", ":scheme", "https", ":authority", "a.example", ":path", "/b?c"];

test.each([
  ["as it is", head, "GET", "/b?c", [["host", "a.example"]]],
  [
    "with Host of the same name",
    [...head, "host", "A.Example"],
    "GET",
    "/b?c",
    [["host", "a.example"]],
  ],
  [
    "with Host of another name: both stand",
    [...head, "host", "b.example"],
    "GET",
    "/b?c",
    [
      ["host", "a.example"],
      ["host", "b.example"],
    ],
  ],
  [
    "without authority",
    [":method", "GET", ":path", "/", "host", "b.example"],
    "GET",
    "/",
    [["host", "b.example"]],
  ],
  [
    "with a cookie in pieces",
    [...head, "cookie", "a=1", "x", "y", "cookie", "b=2"],
    "GET",
    "/b?c",
    [
      ["host", "a.example"],
      ["x", "y"],
      ["cookie", "a=1; b=2"],
    ],
  ],
  [
    "of everything",
    [":method", "OPTIONS", ":path", "*", ":authority", "a"],
    "OPTIONS",
    "*",
    [["host", "a"]],
  ],
  [
    "with an absolute path",
    [":method", "GET", ":path", "http://b/", ":authority", "a"],
    "GET",
    "",
    [["host", "a"]],
  ],
  ["of CONNECT", [":method", "CONNECT", ":authority", "a:1"], "CONNECT", "", [["host", "a:1"]]],
] as const)("%s", (_what, raw, method, target, fields) => {
  expect(readHttp2Request(raw)).toEqual({ method, target, fields });
});

test("the size of a head is that of its names and values", () => {
  expect(
    headBytes([
      ["a", "bc"],
      ["de", ""],
    ]),
  ).toBe(5);
});

const asks = [":method", "CONNECT", ":protocol", "websocket", ":scheme", "https", ":path", "/a"];
const authority = [":authority", "www.example.com"];

test("a request for a WebSocket becomes a GET with an upgrade, under our key", () => {
  const more = ["sec-websocket-version", "13", "sec-websocket-key", "theirs"];
  const head = webSocketHead([...asks, ...authority, ...more], () => "ours");
  expect(readHttp2Request(head ?? [])).toEqual({
    method: "GET",
    target: "/a",
    fields: [
      ["host", "www.example.com"],
      ["sec-websocket-version", "13"],
      ["connection", "Upgrade"],
      ["upgrade", "websocket"],
      ["sec-websocket-key", "ours"],
    ],
  });
});

test.each([
  [":method", "GET", ":path", "/a"],
  [":method", "CONNECT", ":authority", "www.example.com:443"],
  [":method", "CONNECT", ":protocol", "connect-udp", ":path", "/a"],
])("another request stays what it is: %j", (...raw) => {
  expect(webSocketHead([...raw], () => "ours")).toBeUndefined();
});
