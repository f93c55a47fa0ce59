/**
 * The public tests for HTTP caches (npm package http-cache-tests, by the HTTP working group's editor; the site cache-tests.fyi shows its results),
 * run against a base URL and scored by the package's own rules. Not a dependency: packed by npm into `var/`, pinned by the digest below.
 *
 * Of the package's 355 tests 329 are for a reverse proxy: 157 required, 86 optimal, 86 checks. Left out are 5 for browsers only, and
 * the 21 of `Surrogate-Control`, a note of 2001 that no standard took up.
 */

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import type { CacheTestJob, CacheTestKind, CacheTestResult } from "./cache-tests-thread.ts";

const name = "http-cache-tests-0.4.5";
const specifier = "http-cache-tests@0.4.5";
/** SHA-512 of the package as published. */
const digest =
  "DjuwN9nUZXLTW+wav1LRESCZNVxl8SshwOy4z1pxuWbWt5/ay6sM9QQ1lebBaDO6P1IMBoK6mdf+PuVP/QNL8A==";
const store = join(import.meta.dirname, "../../var/cache-tests");
const packWithinMs = 60_000;
/** A run takes about 15 s, most of it pauses. */
const runWithinMs = 180_000;

export type CacheTestScore = {
  readonly pass: number;
  readonly fail: number;
  readonly blocked: number;
};
export type CacheTestResults = Readonly<Record<CacheTestKind, CacheTestScore>> & {
  readonly byId: ReadonlyMap<string, CacheTestResult>;
};

/** The folder of the unpacked package; undefined where npm cannot fetch it. Throws if what it fetched is another. */
export async function findCacheTests(): Promise<string | undefined> {
  const folder = join(store, name);
  if (existsSync(folder)) return folder;
  mkdirSync(store, { recursive: true });
  const temporary = mkdtempSync(join(store, "unpacking-"));
  try {
    const run = promisify(execFile);
    let tarball = join(store, `${name}.tgz`); // Where CI has packed it beforehand.
    if (!existsSync(tarball)) {
      const options = { cwd: temporary, timeout: packWithinMs };
      const packed = await run("npm", ["pack", "--silent", specifier], options).catch(() => null);
      if (packed === null) return undefined;
      tarball = join(temporary, `${name}.tgz`);
    }
    const found = createHash("sha512").update(readFileSync(tarball)).digest("base64");
    if (found !== digest) throw new Error(`${specifier} has the digest ${found}, not ${digest}`);
    await run("tar", ["-xzf", tarball, "-C", temporary]);
    try {
      renameSync(join(temporary, "package"), folder);
    } catch (error) {
      if (!existsSync(folder)) throw error; // Else another process was as quick.
    }
    return folder;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** The tests' origin on a free loopback port. */
export async function startCacheTestOrigin(
  folder: string,
): Promise<AsyncDisposable & { readonly url: string; readonly port: number }> {
  const worker = startThread({ role: "origin", folder });
  const port = Number(await firstMessage(worker));
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      await worker.terminate();
    },
  };
}

/**
 * Runs all tests (or `ids`, and what they depend on) through the cache at `baseUrl`, which must be empty, have no default lifetime and the
 * tests' origin behind it. `host` is sent instead of the URL's own.
 */
export async function runCacheTests(
  folder: string,
  baseUrl: string,
  { host, ids }: { readonly host?: string; readonly ids?: readonly string[] } = {},
): Promise<CacheTestResults> {
  const worker = startThread({ role: "client", folder, baseUrl, host, ids });
  try {
    // What the thread posts is its return value, of this type.
    const results = (await firstMessage(worker)) as readonly CacheTestResult[];
    const score = (kind: CacheTestKind): CacheTestScore => {
      const of = results.filter((result) => result.kind === kind);
      const count = (outcome: CacheTestResult["outcome"]): number =>
        of.filter((result) => result.outcome === outcome).length;
      return { pass: count("pass"), fail: count("fail"), blocked: count("blocked") };
    };
    return {
      required: score("required"),
      optimal: score("optimal"),
      check: score("check"),
      byId: new Map(results.map((result) => [result.id, result])),
    };
  } finally {
    await worker.terminate();
  }
}

function startThread(job: CacheTestJob): Worker {
  // The package tells every oddity of a cache on the console: not for the output of a test run.
  return new Worker(join(import.meta.dirname, "cache-tests-thread.ts"), {
    workerData: job,
    stdout: true,
    stderr: true,
    execArgv: [],
  });
}

async function firstMessage(worker: Worker): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const deadline = setTimeout(
    () => reject(new Error(`no results within ${runWithinMs} ms`)),
    runWithinMs,
  );
  worker.once("message", resolve).once("error", reject);
  worker.once("exit", (code) => reject(new Error(`the tests' thread ended with ${code}`)));
  try {
    return await promise;
  } finally {
    clearTimeout(deadline);
  }
}
