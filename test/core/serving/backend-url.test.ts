// Which backend addresses are refused, in every spelling of them.

import { describe, expect, test } from "vitest";
import { backendHostFault, backendUrlFault } from "../../../src/core/serving/backend-url.ts";

test.each([
  "http://127.0.0.1:8081",
  "http://127.0.0.1:8081/",
  "https://origin.example.com",
  "HTTP://Origin.Example.com:8080",
  "http://localhost:3000",
  "http://app.localhost:3000",
  "http://[::1]:8081",
  "http://10.0.0.7",
  "http://192.168.1.1:80",
  "http://[fd00::7]",
  "http://[fd00:ec1:ffff::254]",
  "http://[fd00:ec3::254]",
  "http://[::ffff:0:10.0.0.7]",
  "http://[::ffff:1:169.254.169.254]",
  "http://xn--bcher-kva.example",
])("%s is accepted", (url) => {
  expect(backendUrlFault(url, {})).toBeUndefined();
});

describe("link-local and metadata addresses are refused", () => {
  test.each([
    "http://169.254.169.254",
    "http://169.254.0.1:80/",
    "http://2852039166/", // One number.
    "http://0xA9FEA9FE/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://169.254.169.254./",
    "http://[fe80::1]",
    "http://[febf::1]",
    "http://[::ffff:169.254.169.254]",
    "http://[::ffff:a9fe:a9fe]",
    "http://[::169.254.169.254]",
    "http://[64:ff9b::169.254.169.254]",
    "http://[2002:a9fe:a9fe::]",
    "http://[fd00:ec2::254]",
    "http://[fd00:0ec2:0:0::254]",
    "http://[fd00:ec2::23]", // Credentials of EKS pods.
    "http://[fd00:ec2:ffff::1]",
    "http://[::ffff:0:169.254.169.254]",
    "http://[::ffff:0:a9fe:a9fe]",
    "http://[::ffff:0:100.100.100.200]",
    "http://[::ffff:100.100.100.200]",
    "http://100.100.100.200",
    "http://168.63.129.16",
    "http://metadata.google.internal",
    "http://METADATA.google.internal./",
    "http://metadata",
    "http://%6detadata.google.internal",
  ])("%s", (url) => {
    expect(backendUrlFault(url, {})).toMatch(/points at a (link-local|cloud metadata)/);
  });
});

test.each([
  ["ftp://example.com", /must start with `http/],
  ["//example.com", /must start with `http/],
  ["example.com:80", /must start with `http/],
  ["", /must start with `http/],
  ["http:example.com", /must start with `http/],
  ["http://user@example.com", /credentials/],
  ["http://user:secret@example.com", /credentials/],
  ["http://@example.com", /credentials/],
  ["http://example.com/#a", /fragment/],
  ["http://example.com/#", /fragment/],
  ["http://example.com/?a", /query/],
  ["http://example.com/app", /path/],
  ["http://exam ple.com", /blanks/],
  ["http://example.com\n", /blanks/],
  ["http:\\\\example.com", /must start/],
  ["http://\\example.com", /backslashes/],
  ["http://bücher.example", /ASCII/],
  ["http://example.com:99999", /is not a URL/],
  ["http://", /is not a URL/],
  ["http://256.1.1.1", /is not a URL/],
  ["http://example.com:0", /port 0/],
  ["http://0.0.0.0:80", /names no host/],
  ["http://[::]:80", /names no host/],
  ["http://224.0.0.1", /multicast/],
  ["http://255.255.255.255", /broadcast/],
  [`http://${"a".repeat(3_000)}`, /longer/],
])("%j is refused", (url, reason) => {
  expect(backendUrlFault(url, {})).toMatch(reason);
});

test("other hosts' loopback names are refused unless the settings allow them", () => {
  for (const url of ["http://host.docker.internal:80", "http://localhost.example.net"]) {
    expect(backendUrlFault(url, {})).toMatch(/another host's loopback name/);
    expect(backendUrlFault(url, { otherLoopbackNamesAllowed: true })).toBeUndefined();
  }
});

test("the guard sees what passed the rest", () => {
  const seen: string[] = [];
  const backendGuard = (url: URL): string | undefined => {
    seen.push(url.host);
    return url.port === "8080" ? "points at the agent itself" : undefined;
  };
  expect(backendUrlFault("http://127.1:8080", { backendGuard })).toBe("points at the agent itself");
  expect(backendUrlFault("http://127.1:8081", { backendGuard })).toBeUndefined();
  expect(backendUrlFault("http://169.254.0.1", { backendGuard })).toMatch(/link-local/);
  expect(seen).toEqual(["127.0.0.1:8080", "127.0.0.1:8081"]);
});

test.each([
  ["preserve", true],
  ["origin.example.com", true],
  ["origin.example.com:8443", true],
  ["127.0.0.1", true],
  ["[::1]:80", true],
  ["", false],
  ["http://example.com", false],
  ["a b", false],
  ["a/b", false],
  ["user@host", false],
  ["host:123456", false],
  ["host:99999", false],
  ["host\r\nX: y", false],
])("backend.host %j: %s", (host, accepted) => {
  expect(backendHostFault(host) === undefined).toBe(accepted);
});
