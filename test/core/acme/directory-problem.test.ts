// What follows from what a directory says.

import { expect, test } from "vitest";
import { eventOfProblem, problemText } from "../../../src/core/acme/directory-problem.ts";

const problem = {
  status: 403,
  type: "unauthorized",
  text: "no",
  hosts: {},
  retryAfterMs: undefined,
};

test.each([
  [{}, "refused", undefined],
  [{ type: "caa" }, "refused", undefined],
  [{ type: "rateLimited", status: 429, retryAfterMs: 5_000 }, "put-off", 5_000],
  [{ type: "rateLimited", status: 429 }, "put-off", 3_600_000],
  [{ type: "", status: 429 }, "put-off", 3_600_000],
  [{ type: "badNonce", status: 400 }, "put-off", undefined],
  [{ type: "serverInternal", status: 500 }, "put-off", undefined],
  [{ type: "", status: 503, retryAfterMs: 60_000 }, "put-off", 60_000],
  [{ type: "accountDoesNotExist", status: 400 }, "put-off", undefined],
  [{ type: "malformed", status: 404 }, "forgotten", undefined],
])("%j: %s", (told, kind, retryAfterMs) => {
  const event = eventOfProblem({ ...problem, ...told });
  expect(event.kind).toBe(kind);
  if (event.kind === "put-off") expect(event.retryAfterMs).toBe(retryAfterMs);
});

test("words come before what the directory says", () => {
  expect(problemText("caa", "CAA record forbids")).toBe(
    "a CAA record of the domain lets others issue its certificates, not this directory; the directory says: CAA record forbids (caa)",
  );
  expect(problemText("", undefined)).toBe("the directory says: it gives no reason");
  expect(problemText("toString", "x")).toBe("the directory says: x (toString)");
});
