// One edge before one origin, in one call; and an origin whose answers may be stored for a minute.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import { until } from "../../support/until.ts";
import { ask, host, openEdge, openOrigin, type Asked, type Edge, type Origin } from "./edge.ts";

export type Handler = (request: IncomingMessage, response: ServerResponse, n: number) => void;

export class Stage implements AsyncDisposable {
  readonly edge: Edge;
  readonly origin: Origin;
  readonly seen: IncomingMessage[];

  constructor(edge: Edge, origin: Origin, seen: IncomingMessage[]) {
    this.edge = edge;
    this.origin = origin;
    this.seen = seen;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.edge[Symbol.asyncDispose]();
    await this.origin[Symbol.asyncDispose]();
  }

  /**
   * Resolves when so many requests have been let in, since the start: now each has its answer or waits for one, of the origin or of another's fetch. A
   * connection that is open says nothing of that.
   */
  async letIn(count: number): Promise<void> {
    const line = `accel_agent_allowed_total{domain="${host}",reason="not-a-bot"} ${count}\n`;
    const isLetIn = async (): Promise<boolean> =>
      (await this.edge.registry.metrics()).includes(line);
    await until(`${count} requests`, isLetIn);
  }

  /** Status, text and how the cache took part. */
  async get(path: string, asked?: Asked): Promise<string> {
    const { status, text, headers } = await ask(this.edge, path, asked);
    return `${status} ${text} ${(headers["cache-status"] ?? "").replace("accel-agent; ", "").replace(/; ttl=.*/, "")}`;
  }
}

export async function openStage(
  handler: Handler,
  cache: NonNullable<SiteInput["cache"]> = {},
): Promise<Stage> {
  const seen: IncomingMessage[] = [];
  const origin = await openOrigin((request, response) => {
    seen.push(request);
    handler(request, response, seen.length);
  });
  const site: SiteInput = { backend: { urls: [origin.url], retries: 0 }, cache };
  return new Stage(await openEdge({ site }), origin, seen);
}

export const fresh: Handler = (_request, response, n) => {
  response.sendDate = false; // It would be of the real clock, and tests turn the edge's.
  response.writeHead(200, {
    "Cache-Control": "max-age=60",
    "Content-Type": "text/plain",
    ETag: `"v${n}"`,
  });
  response.end(`v${n}`);
};
