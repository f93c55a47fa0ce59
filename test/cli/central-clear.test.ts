// `accel-central clear` against the customer API: what it shows of each instance, how long it goes on asking, how it ends.

import { once } from "node:events";
import { connect, createServer } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { member, openApi, type Api } from "../central/api/api-harness.ts";
import { receipt, seen } from "../central/api/receipts.ts";
import { readJournal } from "../../src/central/store/journal/journal.ts";
import { freePorts } from "../support/free-ports.ts";
import { until } from "../support/until.ts";
import { begin, type Ended, type Started } from "./clear-rig.ts";

const stack = new AsyncDisposableStack();
let api: Api;
let url: string;
let token: string;
let domain: string;
let first: number;
let second: number;
let no = 0;
beforeAll(async () => {
  api = stack.use(await openApi());
  url = `http://127.0.0.1:${api.port}`;
});
afterAll(async () => stack.disposeAsync());
beforeEach(async () => {
  api.live.clear();
  api.dryRuns.clear();
  token = await api.trial(`shell${++no}`);
  domain = `s${no}.example.com`;
  const made: number[] = [];
  for (let n = 0; n < 2; n++) {
    const { body } = await api.call("POST", "/deployment-site/", { token, body: { tags: "all" } });
    made.push(Number(member(body, "id")));
  }
  [first = 0, second = 0] = made;
  const body = { name: domain, link_to_deployment_sites_with_tags: "all" };
  await api.call("POST", "/domain/", { token, body });
});

function start(args: readonly string[], stop?: AbortSignal): Started {
  return begin(args, { ACCEL_API_URL: url, ACCEL_API_TOKEN: token }, stop);
}

async function clear(...args: readonly string[]): Promise<Ended> {
  return start(args).ended;
}

test("URLs, prefixes, hosts and everything are named by options, and told again", async () => {
  const named = [
    "--url",
    "/a?b",
    "--url",
    `https://${domain}/c`,
    "--prefix",
    "/foo",
    "--tag",
    "t 1",
    "path:x",
  ];
  const { out } = await clear(domain, ...named, "--wait", "0s");
  expect(out).toContain(
    `of ${domain}: /a?b  https://${domain}/c  all below /foo  the tag t 1  path:x\n`,
  );
  const [entry] = await readJournal(api.store, first, (await clearSeq(first)) - 1, 1);
  expect(entry?.extension).toEqual({
    patterns: ["path:x"],
    urls: [
      { host: null, path: "/a?b" },
      { host: domain, path: "/c" },
    ],
    prefixes: [{ host: null, path: "/foo" }],
    tags: ["t 1"],
  });
  const all = await clear(domain, "--everything", "--wait", "0s");
  expect(all.out).toContain(`of ${domain}: everything\n`);
  const soft = await clear(domain, "--tag", "t", "--soft", "--wait", "0s");
  expect(soft.out).toContain(`of ${domain}: the tag t  (softly)\n`);
  const softly = await readJournal(api.store, first, (await clearSeq(first)) - 1, 1);
  expect(softly[0]?.extension).toEqual({ tags: ["t"], soft: true });
  expect(await clear(domain, "--soft")).toMatchObject({ code: 2 });
  const host = await clear(domain, "--host", domain, "--dry-run");
  expect(host.out).toContain(`nothing is cleared: everything of ${domain}\n`);
  const many = Array.from({ length: 25 }, (_, at) => ["--url", `/p${at}`]).flat();
  expect((await clear(domain, ...many, "--wait", "0s")).out).toContain("/p19  and 5 more\n");
  const refused = await clear(domain, "--url", "/ok", "--prefix", "/css/*");
  expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("did you mean '/css/'?") });
});

async function clearEntries(): Promise<number> {
  const kinds = (await api.journal(first)).map(({ kind }) => kind);
  return kinds.filter((kind) => kind === "cache.clear").length;
}

/** The place of the last clear in each journal, once it stands there. */
async function clearSeq(siteId: number): Promise<number> {
  return until("the clear is journaled", async () => {
    const entries = await api.journal(siteId);
    return entries.findLastIndex(({ kind }) => kind === "cache.clear") + 1 || undefined;
  });
}

type Proof = { readonly instanceId?: string; readonly matched?: number; readonly widened?: true };

async function applied(siteId: number, { matched = 12, ...more }: Proof = {}): Promise<void> {
  const seq = await clearSeq(siteId);
  const detail = { matched, invisible_ms: 3.25, ...(more.widened && { widened: true }) };
  await receipt(api, { siteId, seq, phase: "applied", detail, ...named(more) });
}

async function gone(siteId: number, verified = true, more: Proof = {}): Promise<void> {
  const detail = { removed: 11, blocked_in_flight: 1, gone_ms: 12_345, verified };
  const seq = await clearSeq(siteId);
  await receipt(api, { siteId, seq, phase: "gone", detail, ...named(more) });
}

function named({ instanceId }: Proof): { readonly instanceId?: string } {
  return instanceId === undefined ? {} : { instanceId };
}

/** The lines of the table, their cells between runs of blanks. */
function cells(out: string): readonly (readonly string[])[] {
  const lines = out.split("\n");
  const from = lines.findIndex((line) => line.startsWith("deployment "));
  const to = lines.indexOf("", from);
  return lines.slice(from, to).map((line) => line.split(/ {2,}/));
}

describe("a clear", () => {
  test("shows the proof of every instance, and ends with 0 when it is whole", async () => {
    api.live.add(first).add(second);
    // Longer than central would wait: it is asked for no more than it takes.
    const { ended } = start([domain, "path:news", "ext:css", "--wait", "90s"]);
    await applied(first);
    await gone(first);
    await applied(second, { matched: 0, instanceId: "other", widened: true });
    await gone(second, true, { instanceId: "other" });
    const { code, out, err } = await ended;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(new RegExp(`^clear [0-9a-f]{16} of ${domain}: path:news {2}ext:css\n`));
    const head = "deployment,instance,state,matched,removed,blocked in flight,invisible,gone";
    expect(cells(out).map((row) => row.join())).toEqual([
      `${head},verified,widened`,
      `${first},instance-1,applied,12,11,1,3.3 ms,12.3 s,yes,no`,
      `${second},other,applied,0,11,1,3.3 ms,12.3 s,yes,yes`,
    ]);
    expect(out).toContain("\nproved by 2 of 2 instances\nwidened: more than what was named");
    expect((await api.journal(first)).at(-1)?.body).toMatchObject({
      domain,
      patterns: ["path:news", "ext:css"],
    });
  });

  test("goes on asking for what is pending when central has answered", async () => {
    await seen(api, second);
    const { ended, said } = start([domain, "path:news"]); // Nobody is connected: central answers at once.
    await until("central has answered", () => said().includes("clear "));
    for (const site of [first, second]) await applied(site);
    await gone(second);
    await gone(first);
    const { code, out } = await ended;
    expect(code).toBe(0);
    expect(out).toContain("proved by 2 of 2 instances\n");
    expect(await clearEntries()).toBe(1);
  });

  test("ends with 3 when time is over, and says who is missing and since when", async () => {
    await seen(api, first, "cut-off");
    const { code, out, err } = await clear(domain, "path:news", "--wait", "0s");
    expect(code).toBe(3);
    expect(cells(out).slice(1)).toEqual([
      [String(first), "cut-off", "pending", ...Array.from({ length: 7 }, () => "–")],
      [String(second), "–", "pending", ...Array.from({ length: 7 }, () => "–")],
    ]);
    const lines = [
      "proved by 0 of 2 instances; missing:",
      `  deployment ${first}, instance cut-off: has not reported yet, last seen ${api.clock.toISOString()}`,
      `  deployment ${second}: no agent was ever seen there`,
    ];
    expect(out).toContain(`\n${lines.join("\n")}\n`);
    expect(err).toMatch(
      /^accel-central: clear [0-9a-f]{16} is proved by 0 of 2 instances\n {2}An instance that is away/,
    );
  });

  test("a connection that breaks while central waits: asked again, and one clear all the same", async () => {
    api.live.add(first).add(second);
    const { ended } = start([domain, "path:news"]);
    await clearSeq(first);
    api.server.closeAllConnections();
    for (const site of [first, second]) {
      await applied(site);
      await gone(site);
    }
    expect(await ended).toMatchObject({ code: 0, err: "" });
    expect(await clearEntries()).toBe(1);
  });

  test("a central that has not opened its port yet is waited for", async () => {
    const [port = 0] = await freePorts(1);
    const env = { ACCEL_API_URL: `http://127.0.0.1:${port}`, ACCEL_API_TOKEN: token };
    const { ended } = begin([domain, "path:news"], env);
    // Its first try came before these, and was refused as they are.
    for (let count = 0; count < 3; count++) await once(connect(port, "127.0.0.1"), "error");
    const server = createServer((socket) => {
      const onward = connect(api.port, "127.0.0.1");
      socket.on("error", () => onward.destroy()).pipe(onward);
      onward.on("error", () => socket.destroy()).pipe(socket);
    });
    server.listen(port, "127.0.0.1");
    for (const site of [first, second]) {
      await applied(site);
      await gone(site);
    }
    expect(await ended).toMatchObject({ code: 0, err: "" });
    server.close();
  });

  test("an instance that is connected is not said to be away", async () => {
    await seen(api, first, "slow");
    api.live.add(first);
    const { code, out, err } = await clear(domain, "path:news", "--wait", "0s");
    expect(code).toBe(3);
    expect(out).toContain(
      `  deployment ${first}, instance slow: is connected and has not reported yet, was heard last 7 s ago, last seen`,
    );
    // The other deployment has never had an agent.
    expect(err).toMatch(
      /An instance that is connected was heard within 20 s[^]*An instance that is away/,
    );
  });

  test("is not proved by who failed, still deletes, could not verify; by a snapshot it is", async () => {
    const { clear_id: id } = JSON.parse((await clear(domain, "a", "--wait", "0s", "--json")).out);
    const seq = await clearSeq(first);
    const detail = { reason: "no such\u001b[2J domain" };
    await receipt(api, { siteId: first, seq, phase: "refused", detail, instanceId: "a" });
    await applied(first, { instanceId: "b" });
    await applied(first, { instanceId: "c" });
    await gone(first, false, { instanceId: "c" });
    const snapshot = { snapshot: true, cleared: [domain] };
    await receipt(api, { siteId: second, seq: 99, phase: "applied", detail: snapshot });
    const { code, out } = await clear(domain, "--clear-id", id, "--wait", "0s");
    expect(code).toBe(3);
    const at = api.clock.toISOString();
    const lines = [
      "proved by 1 of 4 instances; missing:",
      `  deployment ${first}, instance a: failed: no such?[2J domain, last seen ${at}`,
      `  deployment ${first}, instance b: nothing that matches is served any more, its deletion goes on`,
      `  deployment ${first}, instance c: after the deletion it could not verify that nothing matches, last seen ${at}`,
    ];
    expect(out).toContain(`\n${lines.join("\n")}\n`);
    expect(cells(out)[4]?.join()).toBe(`${second},instance-1,applied,–,–,–,–,–,–,yes`);
    expect(out).toContain(
      `\ndeployment ${second}, instance instance-1: took the clear with central's snapshot;`,
    );
    expect(out).not.toContain("more than what matches was cleared");
  });

  test("does not wait for an instance that failed", async () => {
    const { ended } = start([domain, "path:news", "--wait", "1d"]);
    await applied(second);
    await gone(second);
    const detail = { reason: "no room" };
    await receipt(api, { siteId: first, seq: await clearSeq(first), phase: "failed", detail });
    const { code, out } = await ended;
    expect(code).toBe(3);
    expect(out).toContain("proved by 1 of 2 instances; missing:\n");
    expect(out).toContain("instance instance-1: failed: no room, last seen");
  });

  test("of a domain that no deployment serves is said to be of nothing", async () => {
    const name = `lonely-${domain}`;
    await api.call("POST", "/domain/", { token, body: { name } });
    expect(await clear(name, "path:a")).toMatchObject({
      code: 0,
      out: expect.stringContaining("no deployment serves the domain"),
    });
  });

  test("as JSON is the API's answer, with the same exit status", async () => {
    const { code, out } = await clear(domain, "path:news", "--json", "--wait", "0.05s");
    const answer = JSON.parse(out);
    const path = `/clear-accelerator-cache/${domain}/${answer.clear_id}/`;
    expect(answer).toEqual((await api.call("GET", path, { token })).body);
    expect(code).toBe(3);
  });

  test("that was given before is asked for by its id, and not given again", async () => {
    const { out } = await clear(domain, "path:news", "--wait", "0s");
    const [, id = ""] = /^clear (\w+) /.exec(out) ?? [];
    const { ended } = start([domain, "--clear-id", id]);
    for (const site of [first, second]) {
      await applied(site);
      await gone(site);
    }
    expect(await ended).toMatchObject({ code: 0, out: expect.stringContaining(`clear ${id} of`) });
    expect(await clearEntries()).toBe(1);
    expect(await clear(domain, "--clear-id", "0000000000000000")).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringContaining(
        `404 Not Found: there is no clear "0000000000000000" of ${domain}`,
      ),
    });
  });

  test("that is interrupted shows what is known", async () => {
    const stop = new AbortController();
    const { ended, said } = start([domain, "path:news", "--wait", "1d"], stop.signal);
    await until("central has answered", () => said().includes("clear "));
    stop.abort("SIGINT");
    expect(await ended).toMatchObject({
      code: 3,
      out: expect.stringContaining("proved by 0 of 2 instances; missing:"),
    });
  });
});

describe("a dry run", () => {
  const sample = {
    kind: "generated" as const,
    path: "/news/1",
    query: "page=2",
    mime: "text/html",
    size: 10,
    stored_at: "2031-05-06T07:08:09.000Z",
    pattern: "url:z2fnewsz2f1z3fpagez3d2",
  };

  test("counts at each instance, shows samples, and clears nothing", async () => {
    api.dryRuns.set(first, [
      { instanceId: "one", result: { matched: 7, samples: [sample] } },
      { instanceId: "two", result: { matched: 0, samples: [], over_budget: true } },
    ]);
    api.dryRuns.set(second, [{ instanceId: "three", result: { matched: 0, samples: [] } }]);
    const { code, out } = await clear(domain, "path:news", "--dry-run");
    expect(code).toBe(0);
    expect(cells(out)).toEqual([
      ["deployment", "instance", "state", "matched", "note"],
      [String(first), "one", "answered", "7", "–"],
      [String(first), "two", "answered", "–", "over budget: the clear would be widened"],
      [String(second), "three", "answered", "0", "–"],
    ]);
    expect(out).toContain("/news/1?page=2  generated  text/html  10    2031-05-06T07:08:09.000Z");
    expect(out).toContain(sample.pattern);
    expect(out).toMatch(/\ncounted at 2 of 2 deployments\n$/);
    expect(await clearEntries()).toBe(0);
    const json = JSON.parse((await clear(domain, "path:news", "--dry-run", "--json")).out);
    expect(json).toMatchObject({ dry_run: true, deployments: [{ samples: [sample] }, {}] });
  });

  test("ends with 3 where a deployment did not answer", async () => {
    api.dryRuns.set(first, [{ instanceId: "one", result: undefined }]);
    await seen(api, second);
    const { code, out, err } = await clear(domain, "path:news", "--dry-run", "--wait", "0s");
    expect(code).toBe(3);
    expect(cells(out).slice(1)).toEqual([
      [String(first), "one", "pending", "–", "–"],
      [String(second), "–", "unreachable", "–", `last seen ${api.clock.toISOString()}`],
    ]);
    expect(err).toContain("only 0 of 2 deployments counted");
  });
});
