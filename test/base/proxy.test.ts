// Which proxy a URL is asked through, by the variables that everybody knows.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { environmentText, proxyFor, takeEnvironment } from "../../src/base/proxy.ts";
import { tempDir } from "../support/temp-dir.ts";

const through = (url: string, env: Record<string, string>): string | undefined =>
  proxyFor(new URL(url), env)?.uri;
const proxy = "http://proxy.test:3128/";

test.each([
  ["https://central.test", {}, undefined],
  ["https://central.test", { HTTPS_PROXY: "http://proxy.test:3128" }, proxy],
  ["https://central.test", { https_proxy: "http://proxy.test:3128" }, proxy],
  ["https://central.test", { HTTPS_PROXY: "proxy.test:3128" }, proxy],
  ["https://central.test", { HTTPS_PROXY: "" }, undefined],
  ["https://central.test", { HTTP_PROXY: "http://proxy.test:3128" }, undefined],
  ["https://central.test", { HTTPS_PROXY: "http://a", https_proxy: proxy }, proxy],
  ["http://central.test", { HTTPS_PROXY: proxy }, undefined],
  ["https://localhost:8443", { HTTPS_PROXY: proxy }, undefined],
  ["https://127.0.0.1", { HTTPS_PROXY: proxy }, undefined],
  ["https://[::1]", { HTTPS_PROXY: proxy }, undefined],
  ["https://central.test", { HTTPS_PROXY: "https://u:p@proxy.test" }, "https://u:p@proxy.test/"],
])("%s with %j: %s", (url, env, expected) => {
  expect(through(url, env as Record<string, string>)).toBe(expected);
});

test.each([
  ["*", true],
  ["central.example.test", true],
  ["example.test", true],
  [".example.test", true],
  ["*.example.test", true],
  ["Example.TEST", true],
  ["other.test, example.test", true],
  ["other.test example.test", true],
  ["example.test:443", true],
  ["example.test:8443", false],
  ["ample.test", false],
  ["l.example.test", false],
  ["", false],
  [",", false],
  [".", false],
])("NO_PROXY=%s excepts central.example.test: %s", (list, isExcepted) => {
  const env = { HTTPS_PROXY: proxy, NO_PROXY: list };
  expect(through("https://central.example.test", env)).toBe(isExcepted ? undefined : proxy);
});

test.each([
  ["https://192.0.2.7", "192.0.2.7", true],
  ["https://192.0.2.7", "192.0.2.0/24", true],
  ["https://192.0.3.7", "192.0.2.0/24", false],
  ["https://[2001:db8::7]", "2001:db8::/32", true],
  ["https://[2001:db8::7]", "[2001:db8::7]", true],
  ["https://[2001:db9::7]", "2001:db8::/32", false],
  ["https://192.0.2.7:8443", "192.0.2.7:8443", true],
  ["https://192.0.2.7:8443", "192.0.2.7:443", false],
])("%s with NO_PROXY=%s: direct %s", (url, list, isExcepted) => {
  expect(through(url, { https_proxy: proxy, no_proxy: list })).toBe(isExcepted ? undefined : proxy);
});

test("messages have no credentials; what is no proxy is refused by its variable's name", () => {
  const target = new URL("https://central.test");
  const found = proxyFor(target, { HTTPS_PROXY: "http://user:word@proxy.test:3128" });
  expect(found).toEqual({
    uri: "http://user:word@proxy.test:3128/",
    shown: "http://proxy.test:3128",
    variable: "HTTPS_PROXY",
  });
  for (const given of ["socks5://proxy.test", "http://", "://", "http://[::1"])
    expect(() => proxyFor(target, { HTTPS_PROXY: given })).toThrow(
      "HTTPS_PROXY must be the address of an HTTP proxy, such as http://proxy.example.com:3128",
    );
});

test("what a unit is given is what was set; a command takes it where its shell has nothing", () => {
  using dir = tempDir();
  const path = join(dir.path, "environment");
  const target = new URL("https://central.test");
  const set = {
    HTTPS_PROXY: 'http://us$er:p%40ss"w`ord@proxy.test:3128',
    NO_PROXY: '10.0.0.0/8, .example.test,[::1]$(reboot)"',
  };
  const proxy = proxyFor(target, set);
  if (proxy === undefined) throw new Error("there is one");
  const text = environmentText(proxy, set);
  expect(text.split("\n")).toEqual([
    'HTTPS_PROXY="http://us%24er:p%40ss%22w%60ord@proxy.test:3128/"',
    'NO_PROXY="10.0.0.0/8, .example.test,[::1]reboot"',
    "",
  ]);
  writeFileSync(path, `# a comment\n${text}`);
  const env: NodeJS.ProcessEnv = {};
  takeEnvironment(path, env);
  expect(proxyFor(target, env)?.uri).toBe("http://us%24er:p%40ss%22w%60ord@proxy.test:3128/");
  expect(proxyFor(new URL("https://x.example.test"), env)).toBeUndefined();
  const own: NodeJS.ProcessEnv = { NO_PROXY: "*" };
  takeEnvironment(path, own);
  expect(own).toEqual({ NO_PROXY: "*" });
  const none: NodeJS.ProcessEnv = {};
  takeEnvironment(join(dir.path, "missing"), none);
  expect(none).toEqual({});
  expect(environmentText({ ...proxy, uri: "http://p.test/" }, {})).toBe(
    'HTTPS_PROXY="http://p.test/"\n',
  );
});
