// The demo site hangs together: every address in it leads to a file or to the backend, nothing leads elsewhere, and it stays small.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import devlove from "../../src/demo/devlove.json" with { type: "json" };
import { startDemoBackend } from "../../src/demo/backend.ts";

const root = fileURLToPath(new URL("../../src/demo/site/", import.meta.url));
const siteBytesMax = 300_000;

const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) =>
  statSync(join(root, name)).isFile(),
);
const paths = new Set(files.map((name) => `/${name}`));
const isText = (name: string): boolean => !/\.(?:png|ico)$/.test(name);
const read = (name: string): string => readFileSync(join(root, name), "utf8");

/** A path of the site as the edge resolves it: a directory answers with its index. */
const isFile = (path: string): boolean =>
  paths.has(path.endsWith("/") ? `${path}index.html` : path);

const addresses = files
  .filter((name) => name.endsWith(".html"))
  .flatMap((name) =>
    [...read(name).matchAll(/ (?:href|src)="([^"]+)"/g)].map((match) => ({
      name,
      address: match[1] ?? "",
    })),
  )
  .filter(({ address }) => !address.startsWith("#"));

test("every address leads somewhere", async () => {
  const stop = new AbortController();
  await using backend = await startDemoBackend({ host: "127.0.0.1", port: 0, stop: stop.signal });
  expect(addresses.length).toBeGreaterThan(100);
  const asked = new Set<string>();
  for (const { name, address } of addresses) {
    const { pathname, origin } = new URL(address, "http://demo.localhost/");
    expect({ name, address, origin }).toEqual({ name, address, origin: "http://demo.localhost" });
    if (!isFile(pathname)) asked.add(address);
  }
  expect(asked.size).toBeGreaterThan(3);
  for (const address of asked) {
    const response = await fetch(backend.url + address, { method: "HEAD" });
    expect({ address, known: response.status !== 404 }).toEqual({ address, known: true });
  }
});

test("pictures and scripts are files, and so is what answers for the unknown", () => {
  const used = files
    .filter((name) => /\.(?:css|js)$/.test(name))
    .flatMap((name) =>
      [...read(name).matchAll(/from "\.\/([^"]+)"/g)].map((match) => `/js/${match[1]}`),
    );
  expect(used.length).toBeGreaterThan(2);
  for (const path of used) expect(paths).toContain(path);
  expect(paths).toContain(devlove.domains["demo.localhost"].not_found);
});

test("nothing is fetched from elsewhere", () => {
  for (const name of files.filter(isText)) {
    const elsewhere = [
      ...read(name).matchAll(/\b(?:https?:)?\/\/[\w.-]+\.[a-z]{2,}[^\s"'<]*/gi),
    ].map(([url]) => url);
    expect({
      name,
      elsewhere: elsewhere.filter(
        (url) => !/^http:\/\/(?:www\.w3\.org\/2000\/svg|demo\.localhost:8080\/)/.test(url),
      ),
    }).toEqual({ name, elsewhere: [] });
  }
});

test("it is small, and of many kinds", () => {
  const bytes = files.reduce((sum, name) => sum + statSync(join(root, name)).size, 0);
  expect(bytes).toBeLessThan(siteBytesMax);
  const kinds = new Set(files.map((name) => name.slice(name.lastIndexOf("."))));
  expect([...kinds].toSorted()).toEqual([
    ".css",
    ".html",
    ".ico",
    ".js",
    ".json",
    ".png",
    ".svg",
    ".txt",
    ".webmanifest",
  ]);
});
