// Open challenges are answered at every door, before anybody is judged, shut out or sent elsewhere; every other path below theirs goes its usual way.

import { afterAll, beforeAll, expect, test } from "vitest";
import type { SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import type { ServingState } from "../../../src/core/serving/serving-state.ts";
import { until } from "../../support/until.ts";
import { ask, Edge, host, openOrigin, stateOf, type Asked, type Origin } from "./edge.ts";
import { askSecure, installed, tableOf, visitByHttp2 } from "./secure-clients.ts";

const path = "/.well-known/acme-challenge/";
const keyAuthorization = "token-1.thumbprint";

let origin: Origin;
const edge = new Edge({
  tlsPort: 443,
  judge: () => ({ kind: "block", reason: "bad-set", bot: "b" }),
});
let securePort = 0;
beforeAll(async () => {
  origin = await openOrigin((_, response) => response.end("the origin's own"));
  await edge.listen();
  securePort = await edge.listenSecure();
  edge.publish(withChallenge(stateOf(1, shut)));
});
afterAll(async () => {
  await edge[Symbol.asyncDispose]();
  await origin[Symbol.asyncDispose]();
});

const shut: SiteInput = {
  redirects: [{ from: "/**", to: "/elsewhere", status: 301 }],
  tls: { redirect_http: true, hsts_s: 60 },
};

function withChallenge(state: ServingState, untilMs = Date.now() + 600_000): ServingState {
  const challenges = new Map([["token-1", { keyAuthorization, untilMs }]]);
  const domains = state.domains.map((domain) => ({
    ...domain,
    hosts: domain.hosts.map((one) => ({ ...one, challenges })),
  }));
  return { ...state, domains, certificates: tableOf(installed()) };
}

type Way = (
  to: string,
  asked?: Asked,
) => Promise<{ readonly status: number; readonly text: string }>;
const ways: readonly (readonly [string, Way])[] = [
  ["the lane", async (to, asked) => ask(edge, to, asked)],
  [
    "node:http",
    async (to, asked) => ask(edge, to, { ...asked, headers: { authorization: "Basic eA==" } }),
  ],
  ["HTTPS", async (to, asked) => askSecure(securePort, to, asked)],
  [
    "HTTP/2",
    async (to, asked) => {
      await using visitor = await visitByHttp2(securePort);
      return await visitor.ask(to, asked);
    },
  ],
];

test.each(ways)("by %s", async (_, way) => {
  const before = edge.records.length;
  const answer = await way(`${path}token-1`);
  expect(answer).toMatchObject({ status: 200, text: keyAuthorization });
  expect(await way(`${path}token-1`, { method: "HEAD" })).toMatchObject({ status: 200, text: "" });
  expect(await way(`${path}token-2`)).toMatchObject({ status: 403 });
  expect(await way(`${path}token-1`, { method: "POST", body: "x" })).toMatchObject({ status: 403 });
  await until("each has one record", () => edge.records.length === before + 4);
  expect(
    edge.records.slice(before).map(({ response_status, verdict }) => [response_status, verdict]),
  ).toEqual([
    [200, "none"],
    [200, "none"],
    [403, "block bad-set"],
    [403, "block bad-set"],
  ]);
});

test("nothing stores it, and it says its length", async () => {
  const { headers } = await ask(edge, `${path}token-1`);
  expect(headers["cache-control"]).toBe("no-store");
  expect(headers["content-length"]).toBe(String(keyAuthorization.length));
});

test.each([true, false])(
  "a token that is over or not ours is the origin's (in the lane: %s)",
  async (lane) => {
    await using open = new Edge({ lane });
    await open.listen();
    const site = { backend: { urls: [origin.url] } };
    open.publish(withChallenge(stateOf(1, site), Date.now() - 1));
    for (const token of ["token-1", "token-2"])
      expect((await ask(open, `${path}${token}`)).text).toBe("the origin's own");
    open.publish(withChallenge(stateOf(2, site)));
    expect((await ask(open, `${path}token-1`)).text).toBe(keyAuthorization);
    expect((await ask(open, `${path}token-2`)).text).toBe("the origin's own");
    expect((await ask(open, "/a")).text).toBe("the origin's own");
  },
);

test("a domain without a devlove proves itself too", async () => {
  await using open = new Edge();
  await open.listen();
  open.publish(withChallenge(stateOf(1, null)));
  expect(await ask(open, `${path}token-1`, { host })).toMatchObject({ status: 200 });
  expect(await ask(open, "/")).toMatchObject({ status: 503 });
});
