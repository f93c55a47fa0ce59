// `accel-central clear` where it cannot do its work: refused, without an address or a token, with a central that is away.

import { once } from "node:events";
import { createServer as createSecure } from "node:https";
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listen } from "../../src/base/http-listener.ts";
import { member, openApi, type Api } from "../central/api/api-harness.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";
import { makeCertificate } from "../support/x509.ts";
import { begin, type Ended } from "./clear-rig.ts";

const stack = new AsyncDisposableStack();
const domain = "www.example.com";
let api: Api;
let url: string;
let token: string;
let site: number;
beforeAll(async () => {
  api = stack.use(await openApi());
  url = `http://127.0.0.1:${api.port}`;
  token = await api.trial("ada");
  const made = await api.call("POST", "/deployment-site/", { token, body: { tags: "" } });
  site = Number(member(made.body, "id"));
  const body = { name: domain, deployment_site_id: site };
  await api.call("POST", "/domain/", { token, body });
});
afterAll(async () => stack.disposeAsync());

async function clear(...args: readonly string[]): Promise<Ended> {
  return begin(args, { ACCEL_API_URL: url, ACCEL_API_TOKEN: token }).ended;
}

describe("a refusal", () => {
  test("of patterns is told with the place, and with what was meant", async () => {
    const given = ["path:ok", "/css/*", "path:ö.it's"];
    expect(await clear(domain, ...given)).toEqual({
      code: 1,
      out: "",
      err: [
        "accel-central: central refused 2 patterns, nothing was cleared:",
        '  the pattern "/css/*" has "/", which may only stand in quotes',
        "    /css/*",
        "    ^ at character 0",
        "  did you mean 'url:z2fcssz2f*'?",
        `  the pattern "path:ö.it's" has ".", which may only stand in quotes`,
        "    path:ö.it's",
        "          ^ at character 6",
        String.raw`  did you mean 'path:"ö.it'\''s"'?`,
        "  Patterns are FTS5 queries: put text with other characters than letters and digits in quotes.",
        "",
      ].join("\n"),
    });
    expect(await clear(domain, "*", "--dry-run")).toMatchObject({ code: 1, out: "" });
    const kinds = (await api.journal(site)).map(({ kind }) => kind);
    expect(kinds).not.toContain("cache.clear");
  });

  test("of the token or the domain says whose it is, and never the token", async () => {
    const secret = "f".repeat(40);
    const unknown = begin([domain, "a"], { ACCEL_API_URL: url, ACCEL_API_TOKEN: secret });
    const { code, out, err } = await unknown.ended;
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toContain(`${url} refused: POST /clear-accelerator-cache/${domain}/: 401`);
    expect(err).toContain("Central knows no such API token");
    expect(err).not.toContain(secret);
    expect(await clear("not-mine.example.com", "a")).toMatchObject({
      code: 1,
      err: expect.stringContaining('404 Not Found: there is no domain "not-mine.example.com"'),
    });
  });

  test("or a certificate of an authority that this host does not know: it says how to name one", async () => {
    const issuer = makeCertificate({ subject: "An authority", isAuthority: true });
    const { key, pem } = makeCertificate({ names: ["127.0.0.1"], issuer });
    const server = createSecure({ key, cert: pem }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const given = { ACCEL_API_URL: `https://127.0.0.1:${port}`, ACCEL_API_TOKEN: token };
    const { code, err } = await begin([domain, "a"], given).ended;
    server.close();
    expect([code, err]).toEqual([1, expect.stringContaining("NODE_EXTRA_CA_CERTS")]);
  });

  test("or nobody there at all: it says where it asked", async () => {
    const given = { ACCEL_API_URL: "http://127.0.0.1:1", ACCEL_API_TOKEN: token };
    expect(await begin([domain, "a", "--wait", "0s"], given).ended).toEqual({
      code: 1,
      out: "",
      err: expect.stringMatching(
        /^accel-central: no answer from http:\/\/127\.0\.0\.1:1: connect ECONNREFUSED[^]*\n {2}Nobody listens there, and nothing was sent/,
      ),
    });
  });
});

describe("where and with whose token", () => {
  test("options come before the environment; a file's line end and the API's prefix do not matter", async () => {
    using dir = tempDir();
    const file = join(dir.path, "token");
    writeFileSync(file, `${token}\n`);
    const elsewhere = { ACCEL_API_URL: "http://127.0.0.1:1", ACCEL_API_TOKEN: "wrong" };
    const args = [domain, "a", "--wait", "0s", "--token-file", file, "--api-url"];
    for (const given of [
      url,
      `${url}/`,
      `${url}/presentation-api/v1`,
      `${url}/presentation-api/v1/`,
    ])
      expect(await begin([...args, given], elsewhere).ended).toMatchObject({ code: 3 });
  });

  const here = { ACCEL_API_URL: "http://127.0.0.1:1", ACCEL_API_TOKEN: "t" };
  test.each<[string, NodeJS.ProcessEnv, RegExp]>([
    ["a.example x", { ACCEL_API_TOKEN: "t" }, /--api-url URL, or set ACCEL_API_URL/],
    ["a.example x", { ACCEL_API_URL: here.ACCEL_API_URL }, /--token-file FILE, or set ACCEL_API_T/],
    ["a.example x", { ...here, ACCEL_API_TOKEN: "two words" }, /ACCEL_API_TOKEN must hold one tok/],
    ["a.example x", { ...here, ACCEL_API_URL: "central" }, /must be an http or https URL/],
    ["a.example x --api-url ftp://central.example.com", here, /must be an http or https URL/],
    ["a.example x --api-url https://me:hidden@central.example.com", here, /^(?![^]*hidden)/],
    ["a.example x --token-file /nowhere/token", here, /token file \/nowhere\/token cannot be read/],
    ["a.example x --token-file /dev/null", here, /\/dev\/null must hold one token/],
    ["a.example x --token t", here, /--token/],
    ["", here, /clear takes a domain/],
    ["a.example", here, /at least one pattern, --url, --prefix, --tag or --host/],
    ["a.example x --wait 30", here, /--wait must be a time from 0s to 1d with a unit/],
    ["a.example x --wait 2d", here, /--wait must be a time from 0s to 1d with a unit/],
    ["a.example x --clear-id 1", here, /--clear-id takes nothing to clear/],
    ["a.example --url /a --clear-id 1", here, /--clear-id takes nothing to clear/],
    ["a.example --everything --clear-id 1", here, /--clear-id takes nothing to clear/],
    ["a.example --clear-id 1 --dry-run", here, /--clear-id takes nothing to clear/],
    [`a.example ${"x ".repeat(65).trim()}`, here, /unexpected argument/],
  ])("clear %s is bad usage", async (args, env, message) => {
    const { code, out, err } = await begin(args === "" ? [] : args.split(" "), env).ended;
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toMatch(message);
  });
});

/** A central that answers in turn as told, the last answer for ever, and is away where nothing is said. */
async function scripted(answers: readonly (object | undefined)[]) {
  let at = 0;
  const keys: unknown[] = [];
  const server = createServer(({ headers }, response) => {
    keys.push(headers["idempotency-key"]);
    const answer = answers[Math.min(at++, answers.length - 1)];
    if (answer === undefined) response.destroy();
    else response.end(JSON.stringify(answer));
  });
  await listen(server, { host: "127.0.0.1", port: 0 });
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    env: { ACCEL_API_URL: `http://127.0.0.1:${port}`, ACCEL_API_TOKEN: "t" },
    asked: () => at,
    keys: (): readonly unknown[] => keys,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe("a central that goes away while the proof is awaited", () => {
  const nothing = { matched: null, removed: null, blocked_in_flight: null, took_ms: null };
  const untold = { ...nothing, invisible_ms: null, gone_ms: null, verified: null };
  const pending = { deployment_site_id: 1, state: "pending", ...untold, instances: [] };
  const state = { clear_id: "c1", domain: "a.example", patterns: ["x"], deployments: [pending] };
  const last_seen = "2031-05-06T07:08:09.000Z";
  const done = { ...untold, state: "applied", matched: 1, removed: 1, verified: true };
  const proved = {
    ...pending,
    ...done,
    instances: [{ instance_id: "one", ...done, last_seen }],
  };

  test("is asked again until it is back", async () => {
    const back = { ...state, deployments: [proved] };
    await using central = await scripted([state, undefined, undefined, back]);
    const { code, out } = await begin(["a.example", "x"], central.env).ended;
    expect({ code, asked: central.asked() }).toEqual({ code: 0, asked: 4 });
    expect(out).toContain("proved by 1 of 1 instances\n");
  });

  test("leaves what is known, and why it is not known better", async () => {
    await using central = await scripted([state, undefined]);
    const stop = new AbortController();
    const { ended } = begin(["a.example", "x"], central.env, stop.signal);
    await until("it was asked again", () => central.asked() > 2);
    stop.abort("SIGINT");
    const { code, out, err } = await ended;
    expect(code).toBe(3);
    expect(out).toContain("proved by 0 of 1 instances; missing:\n  deployment 1: no agent");
    expect(err).toContain(
      "is proved by 0 of 1 instances; asked again, central did not answer: GET",
    );
  });

  test("before it told the clear's id is sent the clear again under one key, and told as that where it stays away", async () => {
    await using central = await scripted([undefined]);
    const stop = new AbortController();
    const { ended } = begin(["a.example", "x"], central.env, stop.signal);
    await until("it was sent again", () => central.asked() > 2);
    stop.abort("SIGINT");
    expect(await ended).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringMatching(
        /no answer from http:[^]*A clear that was under way may have been/,
      ),
    });
    expect(new Set(central.keys()).size).toBe(1);
    expect(central.keys()[0]).toMatch(/^[\da-f-]{36}$/);
  });
});
