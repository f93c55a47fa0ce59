// What counts as an answer of central, and what does not.

import { afterEach, expect, test, vi } from "vitest";
import { ask, lastAnsweredMs, notReached, Refusal, refusalFrom } from "../../src/console/api.ts";

afterEach(() => void vi.unstubAllGlobals());

async function refusalOf(answer: () => Response): Promise<Refusal> {
  vi.stubGlobal("fetch", async () => answer());
  return ask("/session/").then(
    () => new Refusal(200, "answered"),
    (error: unknown) => refusalFrom(error),
  );
}
const page = (status: number) => (): Response =>
  new Response("<h1>Bad Gateway</h1>", { status, headers: { "content-type": "text/html" } });
const problem = (status: number) => (): Response =>
  new Response(JSON.stringify({ detail: "not now" }), {
    status,
    headers: { "content-type": "application/problem+json" },
  });

test.each([502, 503, 504])(
  "a proxy that answers %s in central's place is no answer",
  async (status) => {
    const before = lastAnsweredMs();
    expect(await refusalOf(page(status))).toMatchObject({ status: 0, message: notReached });
    expect(lastAnsweredMs()).toBe(before);
  },
);

test("central's own 503 is one, and so is a page of a proxy that refuses by itself", async () => {
  expect(await refusalOf(problem(503))).toMatchObject({ status: 503, message: "not now" });
  const answered = lastAnsweredMs();
  expect(answered).toBeGreaterThan(0);
  expect(await refusalOf(page(413))).toMatchObject({ status: 413 });
});

test("an answer that breaks off is none", async () => {
  const body = new ReadableStream({
    pull(controller) {
      controller.error(new TypeError("network error"));
    },
  });
  expect(await refusalOf(() => new Response(body))).toMatchObject({
    status: 0,
    message: notReached,
  });
});
