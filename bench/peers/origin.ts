/**
 * The origin of the clearing comparison, in a thread of its own so that it does not wait for the measuring one. Every answer carries its number,
 * the how many-th it is, so that a stored answer and a new one can be told apart at any cache: in the body, `#<number> `, followed by text.
 *
 * A path can be held: its next request takes its number, that is, reads its content, at once, and is answered only when it is released. What
 * comes after it is answered at once.
 */

import { createServer, type ServerResponse } from "node:http";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

type Order = { readonly kind: "hold" | "release"; readonly path: string };
type News =
  | { readonly kind: "listening"; readonly port: number }
  | { readonly kind: "holding" | "armed" | "released"; readonly path: string };

export type Origin = AsyncDisposable & {
  readonly port: number;
  /** Resolves when the next request for the path will be held; its result, when one is. */
  readonly hold: (path: string) => Promise<{ readonly held: Promise<void> }>;
  readonly release: (path: string) => Promise<void>;
};

export async function startOrigin(): Promise<Origin> {
  const worker = new Worker(import.meta.filename);
  const heard = (kind: News["kind"], path?: string): Promise<News> => {
    const { promise, resolve, reject } = Promise.withResolvers<News>();
    const hear = (news: News): void => {
      if (news.kind !== kind || (path !== undefined && "path" in news && news.path !== path))
        return;
      worker.off("message", hear).off("error", reject);
      resolve(news);
    };
    worker.on("message", hear).once("error", reject);
    return promise;
  };
  const order = (what: Order): void => worker.postMessage(what);
  const news = await heard("listening");
  return {
    port: news.kind === "listening" ? news.port : 0,
    async hold(path) {
      const armed = heard("armed", path);
      const held = heard("holding", path).then(() => undefined);
      order({ kind: "hold", path });
      await armed;
      return { held };
    },
    async release(path) {
      const released = heard("released", path);
      order({ kind: "release", path });
      await released;
    },
    async [Symbol.asyncDispose]() {
      await worker.terminate();
    },
  };
}

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  webp: "image/webp",
  json: "application/json",
};
/** Bodies are between 300 and 3,000 bytes: many small objects, so that entries are what is compared, not bytes. */
const filler = "the lamp at the end of the pier was lit at dusk and put out at dawn ".repeat(45);
const keepAliveMs = 600_000;

async function serve(send: (news: News) => void, on: (act: (order: Order) => void) => void) {
  const armed = new Set<string>();
  const held = new Map<string, () => void>();
  let number = 0;
  const answer = (path: string, mine: number, response: ServerResponse): void => {
    const [, extension = "html"] = /\.(\w+)(?:\?|$)/.exec(path) ?? [];
    const body = `#${mine} ${filler.slice(0, 300 + ((path.length * 7_919 + mine) % 2_700))}`;
    response.writeHead(200, {
      "content-type": types[extension] ?? "text/html; charset=utf-8",
      "content-length": body.length,
      "cache-control": "public, max-age=86400",
      etag: `"${mine}"`,
    });
    response.end(body);
  };
  const server = createServer((incoming, response) => {
    const path = incoming.url ?? "/";
    const mine = ++number;
    if (!armed.delete(path)) answer(path, mine, response);
    else {
      held.set(path, () => answer(path, mine, response));
      send({ kind: "holding", path });
    }
  });
  server.keepAliveTimeout = keepAliveMs;
  on(({ kind, path }) => {
    if (kind === "hold") armed.add(path);
    else {
      armed.delete(path);
      held.get(path)?.();
      held.delete(path);
    }
    send({ kind: kind === "hold" ? "armed" : "released", path });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const address = server.address();
  send({
    kind: "listening",
    port: address !== null && typeof address === "object" ? address.port : 0,
  });
}

const port = parentPort;
if (!isMainThread && port !== null)
  await serve(
    (news) => port.postMessage(news),
    (act) => port.on("message", act),
  );
