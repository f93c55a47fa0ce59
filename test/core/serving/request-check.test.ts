// What is wrong with the head of a request, whichever protocol it came by.

import { expect, test } from "vitest";
import { headFault } from "../../../src/core/serving/request-check.ts";

const head = (httpVersion: string, url: string, host: string | undefined) => ({
  method: "GET",
  url,
  httpVersion,
  fields: host === undefined ? [] : [["host", host] as const],
  hasBody: false,
});

const noHost = { status: 400, text: "The Host field names no host." };
const fragment = { status: 400, text: "The request target has a fragment." };

test.each(["1.1", "2"])("HTTP/%s: targets and hosts", (version) => {
  const fault = (url: string, host: string) => headFault(head(version, url, host));
  for (const host of [
    "www.example.com",
    "WWW.Example.COM.",
    "www.example.com:8080",
    "www.example.com:",
    "192.0.2.7:65535",
    "[2001:db8::7]:443",
    "a_b.example",
    "b%C3%BCcher.example",
    "xn--bcher-kva.example",
  ])
    expect(fault("/a?b", host), host).toBeUndefined();
  for (const host of [
    "",
    ":80",
    "a b",
    "a/b",
    "u@a.example",
    "a.example:65536",
    "a<b",
    "%zz",
    "[::1",
    "é",
  ])
    expect(fault("/", host), host).toEqual(noHost);
  for (const url of ["/a#b", "/#", "/?a#", "http://www.example.com/#b"])
    expect(fault(url, "www.example.com"), url).toEqual(fragment);
});

test("the absolute form names its own host", () => {
  expect(headFault(head("1.1", "http://www.example.com", "a.example"))).toBeUndefined();
  expect(headFault(head("1.1", "HTTP://www.example.com:80/x", "a.example"))).toBeUndefined();
  for (const url of ["http:///x", "http://", "http://u@www.example.com/", "http://a:99999/"])
    expect(headFault(head("1.1", url, "www.example.com")), url).toEqual(noHost);
});

test("HTTP/1.0 need not name one, but not a wrong one", () => {
  expect(headFault(head("1.0", "/", undefined))).toBeUndefined();
  expect(headFault(head("1.0", "/", ""))).toEqual(noHost);
  expect(headFault(head("1.1", "/", undefined))).toMatchObject({ status: 400 });
});
