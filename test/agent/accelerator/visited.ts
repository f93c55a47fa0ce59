// One edge before one origin, asked over the lane, over node:http or over HTTP/2, in the same words.

import type { IncomingMessage } from "node:http";
import type { CacheInput, SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import type { ServingState, Views } from "../../../src/core/serving/serving-state.ts";
import { ask, Edge, openOrigin, stateOf, type EdgeOptions } from "./edge.ts";
import { installed, tableOf, visitByHttp2 } from "./secure-clients.ts";
import type { Handler } from "./stage.ts";

export type Way = "lane" | "node:http" | "http2";
export const ways: readonly Way[] = ["lane", "node:http", "http2"];

export type VisitAsked = {
  readonly method?: string;
  /** Pieces are fields of their own. */
  readonly cookie?: string | readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
};

export type VisitGot = {
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
};

/** What stands beside the cache's rules. */
export type VisitedMore = {
  readonly site?: SiteInput;
  readonly views?: Views;
  readonly edge?: EdgeOptions;
};

/** An edge before one origin, asked in one way. */
export class Visited implements AsyncDisposable {
  readonly edge: Edge;
  readonly seen: readonly IncomingMessage[];
  readonly #stateOf: (version: number, cache: NonNullable<SiteInput["cache"]>) => ServingState;
  readonly visit: (path: string, asked: VisitAsked) => Promise<VisitGot>;
  readonly #stack: AsyncDisposableStack;
  #version = 1;

  constructor(
    edge: Edge,
    seen: readonly IncomingMessage[],
    state: (version: number, cache: NonNullable<SiteInput["cache"]>) => ServingState,
    visit: (path: string, asked: VisitAsked) => Promise<VisitGot>,
    stack: AsyncDisposableStack,
  ) {
    this.edge = edge;
    this.seen = seen;
    this.#stateOf = state;
    this.visit = visit;
    this.#stack = stack;
  }

  /** What the origin was told of cookies, request by request. */
  get told(): readonly (string | undefined)[] {
    return this.seen.map(({ headers }) => headers.cookie);
  }

  /** Status, text and how the cache took part. */
  async get(
    cookie: VisitAsked["cookie"] = [],
    asked: Omit<VisitAsked, "cookie"> = {},
    path = "/",
  ): Promise<string> {
    const { status, text, headers } = await this.visit(path, { ...asked, cookie });
    const said = String(headers["cache-status"]).replace("accel-agent; ", "");
    return `${status} ${text} ${said.replace(/; ttl=.*/, "")}`;
  }

  async ask(cookie: VisitAsked["cookie"], path = "/"): Promise<VisitGot> {
    return this.visit(path, { cookie: cookie ?? [] });
  }

  publish(cache: NonNullable<SiteInput["cache"]>): void {
    this.edge.publish(this.#stateOf(++this.#version, cache));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

export async function visited(
  way: Way,
  handler: Handler,
  rule: CacheInput,
  { site, views, edge: options }: VisitedMore = {},
): Promise<Visited> {
  await using stack = new AsyncDisposableStack();
  const seen: IncomingMessage[] = [];
  const origin = stack.use(
    await openOrigin((request, response) => {
      seen.push(request);
      response.sendDate = false; // It would be of the real clock, and tests turn the edge's.
      handler(request, response, seen.length);
    }),
  );
  const edge = stack.use(new Edge({ ...options, lane: way !== "node:http" }));
  await edge.listen();
  const securePort = await edge.listenSecure();
  const backend = { urls: [origin.url], retries: 0 };
  const certificates = tableOf(installed());
  const state = (version: number, cache: NonNullable<SiteInput["cache"]>): ServingState => ({
    ...stateOf(version, { ...site, backend, cache }, views),
    certificates,
  });
  edge.publish(state(1, { default: rule }));
  const owned = stack.move();
  if (way !== "http2")
    return new Visited(edge, seen, state, async (path, { cookie = [], headers = {}, ...asked }) => {
      const cookies = [cookie].flat();
      const said = cookies.length === 0 ? headers : { ...headers, cookie: cookies };
      return await ask(edge, path, { ...asked, headers: said });
    }, owned); // prettier-ignore
  const visitor = owned.use(await visitByHttp2(securePort));
  return new Visited(edge, seen, state, async (path, { cookie = [], headers = {}, method = "GET" }) => {
    const said = { ...headers, cookie: [cookie].flat() };
    return await visitor.ask(path, { method, headers: said });
  }, owned); // prettier-ignore
}
