// A real HTTP hook of a chat: keeps what was posted, answers as it is told.

import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { listenHttp, readBody } from "../../src/base/http-listener.ts";
import { until } from "./until.ts";

export type Posted = {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
};

export type ChatHook = AsyncDisposable & {
  readonly port: number;
  readonly url: string;
  readonly posted: Posted[];
  /** How the next posts are answered, one after the other; else 200. */
  readonly answers: ((response: ServerResponse) => void)[];
  /** Awaited between taking a post and answering. */
  afterPost: (() => Promise<void>) | undefined;
  waitFor(count: number, deadlineMs?: number): Promise<readonly Posted[]>;
};

export async function startChatHook(listenPort = 0): Promise<ChatHook> {
  const posted: Posted[] = [];
  const state: Pick<ChatHook, "answers" | "afterPost"> = { answers: [], afterPost: undefined };
  const listener = await listenHttp(
    (request, response) => {
      const take = async (): Promise<void> => {
        const read = await readBody(request, 100_000);
        if (!read.ok) return;
        const body: unknown = JSON.parse(read.body.toString("utf8"));
        posted.push({ path: request.url ?? "", headers: request.headers, body });
        await state.afterPost?.();
        const answer = state.answers.shift();
        if (answer === undefined) response.end("ok");
        else answer(response);
      };
      take().catch(() => response.destroy());
    },
    { host: "127.0.0.1", port: listenPort },
    { graceMs: 100 },
  );
  return Object.assign(state, {
    port: listener.port,
    url: `http://127.0.0.1:${listener.port}/hook`,
    posted,
    waitFor: async (count: number, deadlineMs?: number) =>
      until(`${count} posts`, () => (posted.length >= count ? posted : undefined), deadlineMs),
    [Symbol.asyncDispose]: async () => listener[Symbol.asyncDispose](),
  });
}
