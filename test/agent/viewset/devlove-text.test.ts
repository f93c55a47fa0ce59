// Documents as an agent reads them: the validator of central judges them again, with the agent's own listeners among what no backend may be.

import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readDevloveFile } from "../../../src/agent/viewset/devlove-file.ts";
import { boundedLine, readDevlove } from "../../../src/agent/viewset/devlove-text.ts";
import { AccelError } from "../../../src/core/faults.ts";
import { reachesOwn } from "../../../src/core/serving/own-listeners.ts";
import { validateDevlove } from "../../../src/wire/devlove-validate.ts";
import { tempDir } from "../../support/temp-dir.ts";

const name = "www.example.com";
const site = { name, subDomains: [] };
const schema = "devlove/1";
const domain = (members: string): string => `{"domains":{"${name}":{${members}}}}`;
const backend = (url: string): string => domain(`"backend":{"urls":["${url}"]}`);
const many = (count: number, text: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => text(n)).join(",");

const own = [{ host: "0.0.0.0", port: 9_464 }];
const rules = {
  backendGuard: ({ hostname, port }: URL) =>
    reachesOwn(hostname, Number(port), own, () => ["192.0.2.7"])
      ? "is the agent itself"
      : undefined,
};

describe("a document of central", () => {
  it.each([
    ["100,000 keys", domain(many(100_000, (n) => `"${n}":1`))],
    ["100,000 domains", `{"domains":{${many(100_000, (n) => `"${n}":1`)}}}`],
    ["a million levels", "[".repeat(2 ** 20)],
    ["more than a megabyte", " ".repeat(2 ** 21)],
    ["a cut text", domain("").slice(0, -1)],
    ["a metadata service", backend("http://169.254.169.254")],
    ["an unknown key", domain('"indx":1')],
  ])("is judged as there: %s", (_name, content) => {
    const context = { mainDomain: name, subDomains: [] };
    const there = validateDevlove(schema, content, context);
    const here = readDevlove(schema, Buffer.from(content), site, {});
    if (there.ok || here.ok) throw new Error("it is accepted");
    expect(here.reasons.length).toBe(there.errors.length);
    for (const [at, { path, message }] of there.errors.entries())
      expect(here.reasons[at]).toContain(path === "" ? message : `${path}: ${message}`);
    expect(boundedLine(here.reasons).length).toBeLessThan(7_000);
  });

  it.each([
    "http://127.0.0.1:9464",
    "http://localhost:9464",
    "http://[::1]:9464",
    "http://127.9.9.9:9464",
    "http://0x7f.1:9464",
    "http://192.0.2.7:9464",
    "http://[::ffff:192.0.2.7]:9464",
  ])("whose backend is the agent at %s is refused", (url) => {
    expect(readDevlove(schema, Buffer.from(backend(url)), site, rules)).toEqual({
      ok: false,
      reasons: [`/domains/${name}/backend/urls/0: "${url}" is the agent itself`],
    });
    expect(readDevlove(schema, Buffer.from(backend(url)), site, {}).ok).toBe(true);
  });

  it("whose backend is beside the agent is not", () => {
    for (const url of ["http://127.0.0.1:9465", "http://192.0.2.8:9464"])
      expect(readDevlove(schema, Buffer.from(backend(url)), site, rules).ok).toBe(true);
  });
});

it("a devlove file of a gigabyte is refused by its size", async () => {
  using dir = tempDir();
  const path = join(dir.path, "devlove.json");
  writeFileSync(path, domain(""));
  truncateSync(path, 2 ** 30);
  const before = process.memoryUsage().rss;
  const read = await readDevloveFile(path, AbortSignal.timeout(60_000));
  expect(read).toBeInstanceOf(AccelError);
  expect(String(read)).toContain("the document has 1073741824 bytes, at most 1 MiB");
  expect(process.memoryUsage().rss - before).toBeLessThan(2 ** 28);
});
