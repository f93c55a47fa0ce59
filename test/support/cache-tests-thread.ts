/**
 * One side of the public HTTP cache tests in a thread of its own: their origin, or their client. The package keeps results, requests and
 * configurations in its modules, so that a second run in the same thread would not be a run of its own; a thread has its own modules.
 *
 * The client is given a `fetch` of ours over node:http. Node's own adds `Cache-Control: no-cache` and `Pragma: no-cache` to conditional and to
 * no-store requests, and Accept-Language, as its standard demands; a cache under test would obey them. Ours sends what the test says, one connection a
 * request, follows nothing, stores nothing, decodes nothing, and hands on statuses that `Response` refuses (the origin says 999).
 */

import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isMainThread, parentPort, workerData } from "node:worker_threads";

export type CacheTestKind = "required" | "optimal" | "check";
export type CacheTestOutcome = "pass" | "fail" | "blocked";
export type CacheTestResult = {
  readonly id: string;
  readonly suite: string;
  readonly kind: CacheTestKind;
  /** `blocked`: a test it depends on did not pass, or its own preparation failed. For `check`, pass is yes and fail is no. */
  readonly outcome: CacheTestOutcome;
  /** What was seen instead; empty where the test passed. */
  readonly why: string;
};
export type CacheTestJob =
  | { readonly role: "origin"; readonly folder: string }
  | {
      readonly role: "client";
      readonly folder: string;
      readonly baseUrl: string;
      readonly host: string | undefined;
      readonly ids: readonly string[] | undefined;
    };

/** What of the package is called; it has no types of its own. */
type Handler = (
  segments: readonly string[],
  incoming: IncomingMessage,
  response: ServerResponse,
) => void;
type PackageTest = {
  readonly id: string;
  readonly kind?: CacheTestKind;
  readonly browser_only?: boolean;
  readonly depends_on?: readonly string[];
};
type PackageSuite = { readonly id: string; readonly tests: readonly PackageTest[] };
type Answer = {
  readonly status: number;
  readonly statusText: string;
  readonly headers: Headers;
  text(): Promise<string>;
};
type AskInit = {
  readonly method?: string;
  readonly headers?: readonly (readonly [string, string])[];
  readonly body?: string;
};

/** Longer than the pauses of the tests (3 s): a connection that a cache kept is not closed under it. */
const keepAliveMs = 65_000;
const answerWithinMs = 30_000;
/** All at once, nearly: what takes time are the pauses. */
const testsAtOnce = 200;

async function load<T>(folder: string, file: string): Promise<T> {
  // The package is pinned by digest, so its modules export what is written here.
  return (await import(pathToFileURL(join(folder, file)).href)) as T;
}

async function runOrigin(folder: string): Promise<number> {
  const handlers = new Map<string, Handler>();
  for (const name of ["config", "state", "test"]) {
    const { default: handler } = await load<{ default: Handler }>(
      folder,
      `server/handle-${name}.mjs`,
    );
    handlers.set(name, handler);
  }
  const server = createServer((incoming, response) => {
    const { pathname } = new URL(incoming.url ?? "/", "http://origin");
    const [dispatch = "", ...segments] = pathname.split("/").slice(1);
    const handler = handlers.get(dispatch);
    if (handler !== undefined) handler(segments, incoming, response);
    else response.writeHead(404).end();
  });
  server.keepAliveTimeout = keepAliveMs;
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const address = server.address();
  return address !== null && typeof address === "object" ? address.port : 0;
}

/** `fetch` as the package calls it. */
function openAsk(host: string | undefined): (url: string, init?: AskInit) => Promise<Answer> {
  return async (url, { method = "GET", headers = [], body } = {}) => {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const sent: string[] = ["Host", host ?? new URL(url).host];
    for (const [name, value] of headers) sent.push(name, value);
    const names = new Set(headers.map(([name]) => name.toLowerCase()));
    if (!names.has("user-agent"))
      sent.push("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101");
    if (!names.has("accept")) sent.push("Accept", "*/*");
    if (body !== undefined || !["GET", "HEAD", "DELETE"].includes(method))
      sent.push("Content-Length", String(Buffer.byteLength(body ?? "")));
    sent.push("Connection", "close");
    const outgoing = request(url, { method, headers: sent, agent: false }, (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
      incoming.on("error", reject);
      incoming.on("end", () => resolve(answerOf(incoming, Buffer.concat(chunks))));
    });
    outgoing.setTimeout(answerWithinMs, () => outgoing.destroy(new Error("no answer in time")));
    outgoing.on("error", reject);
    outgoing.end(body);
    return promise;
  };
}

function answerOf(incoming: IncomingMessage, body: Buffer): Answer {
  const headers = new Headers();
  for (let at = 0; at + 1 < incoming.rawHeaders.length; at += 2)
    headers.append(incoming.rawHeaders[at] ?? "", incoming.rawHeaders[at + 1] ?? "");
  return {
    status: incoming.statusCode ?? 0,
    statusText: incoming.statusMessage ?? "",
    headers,
    text: async () => body.toString(),
  };
}

async function runClient(
  job: CacheTestJob & { role: "client" },
): Promise<readonly CacheTestResult[]> {
  const { default: all } = await load<{ default: readonly PackageSuite[] }>(
    job.folder,
    "tests/index.mjs",
  );
  const { runTests, getResults } = await load<{
    readonly runTests: (
      suites: readonly PackageSuite[],
      fetch: unknown,
      browser: boolean,
      base: string,
      atOnce: number,
    ) => Promise<void>;
    readonly getResults: () => Readonly<Record<string, true | readonly [string, string]>>;
  }>(job.folder, "client/runner.mjs");
  const { determineTestResult } = await load<{
    readonly determineTestResult: (
      suites: readonly PackageSuite[],
      id: string,
      results: unknown,
    ) => readonly string[];
  }>(job.folder, "lib/display.mjs");
  const asked = withDependencies(all, job.ids);
  const suites = all.map((suite) => ({
    ...suite,
    tests: suite.tests.filter(
      ({ id, browser_only: browserOnly }) =>
        browserOnly !== true && (asked === undefined || asked.has(id)),
    ),
  }));
  await runTests(suites, openAsk(job.host), false, job.baseUrl, testsAtOnce);
  const results = getResults();
  return suites.flatMap(({ id: suite, tests }) =>
    tests.map(({ id, kind = "required" }) => {
      const result = results[id];
      const [, , sign = ""] = determineTestResult(suites, id, results);
      const why = result === undefined || result === true ? "" : result.join(": ");
      return { id, suite, kind, outcome: outcomes[sign] ?? "blocked", why };
    }),
  );
}

/** The signs of lib/display.mjs; what is missing here says that the test could not be judged. */
const outcomes: Readonly<Record<string, CacheTestOutcome>> = {
  "✅": "pass",
  Y: "pass",
  "⛔️": "fail",
  "⚠️": "fail",
  N: "fail",
};

function withDependencies(
  all: readonly PackageSuite[],
  ids: readonly string[] | undefined,
): ReadonlySet<string> | undefined {
  if (ids === undefined) return undefined;
  const byId = new Map(all.flatMap(({ tests }) => tests).map((test) => [test.id, test]));
  const asked = new Set<string>();
  const add = (id: string): void => {
    if (asked.has(id)) return;
    asked.add(id);
    for (const needed of byId.get(id)?.depends_on ?? []) add(needed);
  };
  for (const id of ids) add(id);
  return asked;
}

if (!isMainThread && parentPort !== null) {
  const job = workerData as CacheTestJob; // Only cache-tests.ts starts this file.
  parentPort.postMessage(
    job.role === "origin" ? await runOrigin(job.folder) : await runClient(job),
  );
}
