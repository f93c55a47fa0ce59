// A page that listens to a stream of events, as a browser does: what it was told and when, until the stream ends or it leaves.

import { get } from "node:http";
import { until } from "./until.ts";

export type HeardEvent = {
  readonly name: string;
  readonly data: Record<string, unknown>;
  readonly atMs: number;
};

export type EventListener = Disposable & {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly heard: HeardEvent[];
  /** All that came, with comments. */
  readonly text: () => string;
  readonly isOver: () => boolean;
  /** Resolves with the first event of a name from a place on. */
  readonly next: (name: string, after?: number) => Promise<HeardEvent>;
};

/** Resolves when the answer begins. */
export async function listenToEvents(
  url: string,
  headers: Readonly<Record<string, string>>,
): Promise<EventListener> {
  const { promise, resolve, reject } = Promise.withResolvers<EventListener>();
  const path = `${url}/presentation-api/v1/events/`;
  const request = get(path, { agent: false, headers }, (response) => {
    const heard: HeardEvent[] = [];
    let [all, rest, isOver] = ["", "", false];
    response.setEncoding("utf8");
    response.on("data", (chunk: string) => {
      all += chunk;
      const blocks = (rest + chunk).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const [, name] = /^event: (.*)$/m.exec(block) ?? [];
        const [, data = "{}"] = /^data: (.*)$/m.exec(block) ?? [];
        if (name !== undefined)
          heard.push({ name, data: Object(JSON.parse(data)), atMs: performance.now() });
      }
    });
    response.on("error", () => undefined);
    response.on("close", () => (isOver = true));
    resolve({
      status: response.statusCode ?? 0,
      headers: response.headers,
      heard,
      text: () => all,
      isOver: () => isOver,
      next: async (name, after = 0) =>
        until(`the event ${name}`, () => heard.slice(after).find((one) => one.name === name)),
      [Symbol.dispose]: () => request.destroy(),
    });
  });
  request.on("error", reject);
  return promise;
}
