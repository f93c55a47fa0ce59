// What visitors feel of an encoder at work: cached pages at a fixed rate, in rounds with it and without it in turn.

import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { builtTree } from "../../test/support/built-tree.ts";
import { CustomerScript, domain } from "../../test/support/customer-script.ts";
import { browser, Edge } from "../../test/support/edge.ts";
import { until } from "../../test/support/until.ts";
import { percentile, type Figures } from "../support/figures.ts";
import { medianWithInterval } from "../support/interval.ts";
import { visitAtPace, type PacedOptions } from "../support/paced-load.ts";
import type { Photograph } from "./photographs.ts";

export type Rounds = {
  readonly rounds: number;
  readonly seconds: number;
  readonly perSecond: number;
};

const ratioMost = 1.25;
/** What visitors accept who get originals alone, and those who get forms. */
const originals = "*/*";
const forms = "image/avif,image/webp,*/*";
/** New pictures: a little more than the encoder makes. */
const picturesPerSecond = 3;
/** The encoder rests for less between two pictures. */
const quietMs = 2_500;
const page = "/page/one?x=1"; // CustomerScript has it cached.

/** The whole agent: visitors who take AVIF ask for pictures that it has not seen. Throws where this release does not serve `images.optimize`. */
export async function measureAgent(
  photos: readonly Photograph[],
  figures: Figures,
  rounds: Rounds,
): Promise<void> {
  using tree = builtTree();
  await using scene = await openScene(tree.main);
  await using pictures = await startPictures(photos);
  await scene.optimize(pictures.url);
  figures.head("visitors of an agent that makes pictures smaller");
  let no = 0;
  /** The first visit stores a picture, the second is answered from the cache, and has a form made for who takes one. */
  const nextVisits = (): readonly string[] =>
    Array.from({ length: picturesPerSecond }, () => no++).flatMap((one) => {
      const path = `/picture/${one}.jpg`;
      return [path, path];
    });
  /** Cached pages and, meanwhile, pictures that nobody has asked for before. Returns how long the pages took, ms. */
  const visit = async (
    accept: string,
    { seconds, perSecond }: Rounds,
  ): Promise<readonly number[]> => {
    const pages = scene.visit({ paths: [page], accept: "*/*", perSecond, seconds });
    for (let second = 0; second < seconds; second++) {
      const paths = nextVisits();
      await scene.visit({ paths, accept, perSecond: paths.length, seconds: 1 });
    }
    return pages;
  };
  const p99: Record<"without" | "beside", number[]> = { without: [], beside: [] };
  let made = 0;
  await visit(originals, rounds); // Warms up.
  await visit(forms, rounds);
  for (let round = 0; round < rounds.rounds; round++) {
    const before = await scene.untilNoneIsMade();
    p99.without.push(percentile(await visit(originals, rounds), 0.99));
    const between = await scene.formsMade();
    if (between > before) throw new Error("forms were made for visitors who take none");
    p99.beside.push(percentile(await visit(forms, rounds), 0.99));
    made += (await scene.formsMade()) - between;
  }
  // What else the host does changes from minute to minute: each round is compared with the one before it.
  const ratios = p99.beside.map((ms, round) => ms / (p99.without[round] ?? ms));
  const { median, from, to } = medianWithInterval(ratios);
  const [without, beside] = [percentile(p99.without, 0.5), percentile(p99.beside, 0.5)];
  const perSecond = made / rounds.rounds / rounds.seconds;
  figures.add(
    "p99 beside pictures, by p99 without",
    median,
    "times",
    { most: ratioMost },
    `95 %: ${from.toFixed(2)} to ${to.toFixed(2)}; ${without.toFixed(2)} ms without, ${beside.toFixed(2)} ms beside ${perSecond.toFixed(1)} pictures a second`,
  );
  const least = picturesPerSecond / 2;
  figures.add("pictures made a second meanwhile", perSecond, "", { least });
}

type Visits = Pick<PacedOptions, "paths" | "perSecond" | "seconds"> & { readonly accept: string };

type Scene = AsyncDisposable & {
  /** Returns how long each took, ms. Rejects where one was not answered. */
  readonly visit: (visits: Visits) => Promise<readonly number[]>;
  /** Resolves with the number of forms that were made when no more are being made. */
  readonly untilNoneIsMade: () => Promise<number>;
  /** Activates a devlove with `images.optimize` and this backend. */
  readonly optimize: (backend: string) => Promise<void>;
  readonly formsMade: () => Promise<number>;
};

async function openScene(main: string): Promise<Scene> {
  await using stack = new AsyncDisposableStack();
  const edge = stack.use(await Edge.prepare());
  const pages = stack.use(await startPictures([]));
  await edge.startCentral(main);
  const script = new CustomerScript(edge, pages.url, "images");
  await script.enrol();
  edge.changeAgentSettings({
    accelerator: { listen: `127.0.0.1:${edge.ports.visitors}`, workers: 1 },
  });
  // Visitors are elsewhere than the host and its encoder: groups of sessions share a core alike, whatever their priorities (sched_autogroup).
  execFileSync("taskset", ["-apc", "1", String(process.pid)], { stdio: "ignore" });
  await edge.startAgent(main, ["taskset", "-c", "0"]);
  for (const { name, run } of script.steps())
    if (["domain", "activate"].includes(name)) await run();
  const origin = `http://127.0.0.1:${edge.ports.visitors}`;
  const owned = stack.move();
  return {
    visit: async ({ accept, ...paced }) => {
      const headers = { host: domain, "user-agent": browser, accept };
      const { failed, tookMs } = await visitAtPace({ origin, headers, ...paced });
      if (failed > 0) throw new Error(`${failed} visitors were not answered`);
      return tookMs;
    },
    untilNoneIsMade: async () => {
      for (let before = -1; ;) {
        const now = await formsMade(edge.ports.metrics);
        if (now === before) return now;
        before = now;
        await sleep(quietMs);
      }
    },
    optimize: async (backend) => optimize(edge, backend),
    formsMade: async () => formsMade(edge.ports.metrics),
    [Symbol.asyncDispose]: async () => owned.disposeAsync(),
  };
}

async function optimize({ api }: Edge, backend: string): Promise<void> {
  const rules = { backend: { urls: [backend] }, images: { optimize: true } };
  const content = JSON.stringify({ domains: { [domain]: rules } });
  const posted = await api.post(`/${domain}/devlove/pictures/`, { schema: "devlove/1", content });
  if (posted.status !== 201)
    throw new Error(`images.optimize is refused: ${JSON.stringify(posted.body)}`);
  // The shape of the answer is the customer API's.
  const versions = (await api.get(`/active-viewset/${domain}/`)).body as readonly {
    readonly id: number;
    readonly name: string;
  }[];
  const id = versions.find(({ name }) => name === "pictures")?.id;
  await api.put(`/active-viewset/${domain}/${id}/`, {});
  await until("the devlove is in force", async () => {
    const { body } = await api.get(`/active-viewset/${domain}/${id}/`);
    return (body as { readonly activation?: unknown }).activation === "applied";
  });
}

async function formsMade(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics/deployment`)).text();
  const rows = text.matchAll(/^accel_agent_image_made_total(?:\{[^}]*\})? (\d+)/gm);
  return [...rows].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** An origin whose pictures all differ: each has its path in a comment. */
async function startPictures(
  photos: readonly Photograph[],
): Promise<{ readonly url: string } & AsyncDisposable> {
  const server = createServer((request, response) => {
    const path = request.url ?? "/";
    const no = Number(/^\/picture\/(\d+)/.exec(path)?.[1] ?? 0);
    const photo = photos[no % Math.max(1, photos.length)]?.bytes;
    const isPicture = photo !== undefined && path.startsWith("/picture/");
    response.setHeader("cache-control", "public, max-age=600");
    response.setHeader("content-type", isPicture ? "image/jpeg" : "text/html; charset=utf-8");
    response.end(isPicture ? withComment(photo, path) : `page ${path}`);
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  // A server that listens on TCP has such an address.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      const closed = Promise.withResolvers<void>();
      server.close(() => closed.resolve());
      server.closeAllConnections();
      await closed.promise;
    },
  };
}

function withComment(jpeg: Uint8Array, text: string): Buffer {
  const comment = Buffer.from(text);
  const head = Buffer.from([0xff, 0xfe, 0, comment.length + 2]);
  return Buffer.concat([jpeg.subarray(0, 2), head, comment, jpeg.subarray(2)]);
}
