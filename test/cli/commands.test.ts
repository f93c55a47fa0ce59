// Operator commands against a control socket with the agent's own routes behind it: what they send, what they print, how they fail.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { controlRoutes } from "../../src/agent/admin/control-routes.ts";
import { callControl, startControlSocket } from "../../src/base/control-socket.ts";
import { agentBotsCommand } from "../../src/cli/agent-bots.ts";
import { cacheCommand } from "../../src/cli/agent-cache.ts";
import { logsCommand } from "../../src/cli/agent-logs.ts";
import { agentStatusCommand } from "../../src/cli/agent-status.ts";
import { whyCommand } from "../../src/cli/agent-why.ts";
import { socketPath } from "../../src/cli/control.ts";
import { AccelError } from "../../src/core/faults.ts";
import { statusOf } from "../agent/admin/status-of.ts";
import { requestRecord } from "../support/request-records.ts";
import { tempDir } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";
import { contextOf, fakePorts, run, withAgent } from "./command-rig.ts";

const commands = {
  cache: cacheCommand,
  bots: agentBotsCommand,
  logs: logsCommand,
  status: agentStatusCommand,
  why: whyCommand,
};

test.each([
  [
    "cache",
    "search a.example path:x",
    ["cacheSearch", { domain: "a.example", host: null, patterns: ["path:x"], limit: 50 }],
  ],
  [
    "cache",
    "search sub.a.example path:x y --limit 3",
    [
      "cacheSearch",
      { domain: "a.example", host: "sub.a.example", patterns: ["path:x", "y"], limit: 3 },
    ],
  ],
  [
    "cache",
    "clear a.example x y",
    ["cacheClear", { domain: "a.example", host: null, patterns: ["x", "y"] }],
  ],
  [
    "cache",
    "clear SUB.a.example x",
    ["cacheClear", { domain: "a.example", host: "sub.a.example", patterns: ["x"] }],
  ],
  [
    "cache",
    "clear a.example x --dry-run",
    ["cacheDryRun", { domain: "a.example", host: null, patterns: ["x"] }],
  ],
  [
    "cache",
    "clear a.example --url /a?b --url https://sub.a.example/ --prefix /foo --dry-run",
    [
      "cacheDryRun",
      {
        domain: "a.example",
        host: null,
        patterns: ["kind:static OR kind:generated"],
        items: {
          urls: [
            { host: null, path: "/a?b" },
            { host: "sub.a.example", path: "/" },
          ],
          prefixes: [{ host: null, path: "/foo" }],
        },
      },
    ],
  ],
  [
    "cache",
    "clear a.example --host sub.a.example",
    [
      "cacheClear",
      { domain: "a.example", host: "sub.a.example", patterns: ["kind:static OR kind:generated"] },
    ],
  ],
  [
    "cache",
    "clear a.example --everything",
    [
      "cacheClear",
      { domain: "a.example", host: null, patterns: ["kind:static OR kind:generated"] },
    ],
  ],
  [
    "cache",
    "clear a.example x --soft",
    ["cacheClear", { domain: "a.example", host: null, patterns: ["x"], items: { soft: true } }],
  ],
  ["why", "http://127.0.0.1:8080/a", ["why", { host: "a.example", rawPath: "/a" }, null]],
  ["why", "http://localhost/a", ["why", { host: "a.example" }, null]],
  ["why", "http://[::1]:8080/a", ["why", { host: "a.example" }, null]],
  ["why", "a.example/a", ["why", { host: "a.example", rawPath: "/a", rawQuery: "" }, null]],
  [
    "why",
    "a.example/a? --cookie sid=1",
    ["why", { rawPath: "/a", rawQuery: "", hasLoneMark: true }, "sid=1"],
  ],
  [
    "why",
    "HTTPS://A.example:8443/ü/%C3%BC?x=1&y#part",
    ["why", { host: "a.example", rawPath: "/%C3%BC/%C3%BC", rawQuery: "x=1&y" }, null],
  ],
  ["why", "192.0.2.1", ["whyAddress", { ip: "192.0.2.1" }]],
  [
    "why",
    "2001:db8::1 --ua curl --domain sub.a.example",
    ["whyAddress", { ip: "2001:db8::1", userAgent: "curl", host: "sub.a.example" }],
  ],
  ["why", "0123456789ABCDEF", ["whyDecision", "0123456789abcdef"]],
  ["cache", "stats", ["cacheStats"]],
  ["cache", "check", ["cacheCheck"]],
  ["bots", "check 192.0.2.1", ["botsCheck", { ip: "192.0.2.1" }]],
  [
    "bots",
    "check 2001:db8::1 --ua curl --domain sub.a.example",
    ["botsCheck", { ip: "2001:db8::1", userAgent: "curl", host: "sub.a.example" }],
  ],
  ["bots", "list", ["botsList"]],
  ["logs", "backlog", ["logsBacklog"]],
  ["logs", "tail", ["logsTail", { lines: 10, follow: false }]],
  [
    "logs",
    "tail --follow --lines 0 --domain Sub.A.example --status 5xx",
    [
      "logsTail",
      { lines: 0, follow: true, domain: "sub.a.example", status: { least: 500, most: 599 } },
    ],
  ],
  ["logs", "tail --status 404", ["logsTail", { status: { least: 404, most: 404 } }]],
] as const)("%s %s", async (name, args, call) => {
  await withAgent(async (where, calls) => {
    const stop = new AbortController();
    const ended = run(commands[name], [...args.split(" "), ...where], false, stop.signal);
    if (args.includes("--follow")) {
      await until("it is asked", () => calls.length > 0);
      stop.abort();
    }
    await ended;
    expect(calls).toMatchObject([call]);
  });
});

test("why says which request it is about, and repeats no cookie", async () => {
  await withAgent(async (where) => {
    const lineOf = (text: string): string | undefined => text.split("\n")[1];
    const plain = await run(whyCommand, ["a.example/a", ...where]);
    expect(lineOf(plain)).toBe("  a plain GET  generated, cache: miss (from the backend)");
    const told = await run(whyCommand, ["a.example/a", "--cookie", "sid=secret", ...where]);
    expect(lineOf(told)).toBe(
      "  a GET with these cookies  generated, cache: miss (from the backend)",
    );
    expect(told).not.toContain("secret");
  });
});

test("logs tail prints a line a record, for a person and for a program, and what was left out", async () => {
  await withAgent(async (where) => {
    const human = await run(logsCommand, ["tail", ...where]);
    expect(human.split("\n")).toEqual([
      '2023-11-14T22:13:20.007Z 503 hit         4 ms   1.2 KiB GET www.example.com/articles/7?page=2 192.0.2.1 "curl?[2J"',
      "… 12 records left out here",
      "",
    ]);
    expect(await run(logsCommand, ["tail", ...where], true)).toContain("\u001B[31m503\u001B[0m");
    const [first = "", ...rest] = (await run(logsCommand, ["tail", "--json", ...where])).split(
      "\n",
    );
    expect(JSON.parse(first)).toMatchObject({ connection: 7, response_status: 503 });
    expect(rest).toEqual(['{"missed":12}', ""]);
  });
});

test("logs tail --follow goes on when the agent restarts, with all that the new process has", async () => {
  using dir = tempDir();
  const path = join(dir.path, "control.sock");
  const asked: unknown[] = [];
  const agent = async (id: number) =>
    startControlSocket(path, {
      "logs-tail": async function* tail(query: unknown) {
        asked.push(query);
        yield { following: true };
        yield { record: requestRecord(id, { uri_path: `/of-${id}` }) };
        await Promise.withResolvers<never>().promise;
      },
    });
  const stop = new AbortController();
  let printed = "";
  const first = await agent(1);
  const args = ["tail", "--follow", "--domain", "a.example", "--state-dir", dir.path];
  const following = logsCommand.run({
    ...contextOf(args, stop.signal),
    out: (text) => void (printed += text),
  });
  await until("the first agent's record", () => printed.includes("/of-1"));
  await first[Symbol.asyncDispose]();
  await using _ = await agent(2);
  await until("the second agent's record", () => printed.includes("/of-2"));
  stop.abort();
  await following;
  expect(asked).toEqual([
    { follow: true, domain: "a.example" },
    { follow: true, domain: "a.example", lines: "10000" },
  ]);
});

test.each([
  ["cache", "", "one of search, clear, stats, check"],
  ["cache", "purge", "cache purge: one of search, clear, stats, check"],
  ["cache", "search a.example", "cache search takes a domain and at least one pattern"],
  ["cache", "search a.example x --dry-run", "--dry-run goes with cache clear only"],
  ["cache", "search a.example x --url /a", "--everything and --soft go with cache clear only"],
  [
    "cache",
    "clear a.example",
    "cache clear takes at least one pattern, --url, --prefix, --tag or --host",
  ],
  ["cache", "clear", "cache clear takes a domain"],
  ["cache", "clear a.example x --limit 3", "--limit goes with cache search only"],
  ["why", "", "why takes a URL"],
  ["why", "192.0.2.0/24", 'one address, not the range "192.0.2.0/24"'],
  ["why", "0123456789abcde", "names no host"],
  ["why", "0123456789abcdef --ua x", "--ua and --domain go with an address only"],
  ["why", "a.example/a --domain a.example", "--ua and --domain go with an address only"],
  ["why", "192.0.2.1 --cookie a=1", "--cookie goes with a URL only"],
  ["why", "ftp://a.example/", "is no http or https URL"],
  ["why", "/just/a/path", "names no host"],
  ["why", "http://a.example/ extra", "extra"],
  ["cache", "search a.example x --limit many", "--limit: a number from 1"],
  ["cache", "search a.example x --limit 0", "--limit: a number from 1"],
  ["cache", "clear a.example", "at least one pattern"],
  ["cache", "stats now", "cache stats takes no arguments"],
  ["bots", "", "one of check, list"],
  ["bots", "check", "bots check takes an address"],
  ["bots", "check 192.0.2.999", '"192.0.2.999" is no IP address'],
  ["bots", "list all", "bots list takes no arguments"],
  ["bots", "check 192.0.2.1 --agent x", "--agent"],
  ["logs", "", "one of tail, backlog"],
  ["logs", "head", "logs head: one of tail, backlog"],
  ["logs", "backlog --follow", "go with tail only"],
  ["logs", "tail --lines many", "--lines: a number from 0"],
  ["logs", "tail --lines 10001", "--lines: a number from 0"],
  ["logs", "tail --status 6xx", "--status: a status as 404"],
  ["logs", "tail --domain 192.0.2.1/24", "is no host name"],
  ["status", "now", "now"],
] as const)("%s '%s' is bad usage: %s", async (name, args, message) => {
  await withAgent(async (where, calls) => {
    const given = args === "" ? [] : args.split(" ");
    await expect(run(commands[name], [...given, ...where])).rejects.toMatchObject({
      code: "USAGE",
      message: expect.stringContaining(message),
    });
    expect(calls).toEqual([]);
  });
});

test.each([
  ["cache-clear", { domain: "a.example", patterns: [] }, "a pattern, URL, prefix, tag or host"],
  ["cache-clear", { domain: "a.example", urls: ["b/c"] }, "did you mean /b/c"],
  ["cache-clear", { domain: "a.example", prefixes: ["/css/*"] }, "did you mean /css/"],
  ["cache-clear", { domain: "a.example", hosts: ["other.example"] }, "is no host of this domain"],
  ["cache-clear", { domain: "a.example", patterns: ["x", 5] }, "patterns must be a list of texts"],
  ["cache-search", { domain: "a.example" }, "patterns are needed"],
  ["cache-search", { domain: "a.example", patterns: ["x"], limit: 10_001 }, "--limit"],
  ["why", {}, "why takes a URL"],
  ["bots-check", {}, "no IP address"],
  ["bots-check", [], "must be a JSON object"],
])("the route %s checks %j for itself", async (route, parameters, message) => {
  await withAgent(async ([, stateDir], calls) => {
    const answer = callControl(
      `${stateDir}/control.sock`,
      route,
      parameters,
      new AbortController().signal,
    );
    await expect(answer.next()).rejects.toMatchObject({
      code: "USAGE",
      message: expect.stringContaining(message),
    });
    expect(calls).toEqual([]);
  });
});

test("a check that finds something fails, and says what", async () => {
  const routes = { "cache-check": () => ({ ok: false, problems: ["3 bodies are missing"] }) };
  await withAgent(async (where) => {
    await expect(run(cacheCommand, ["check", ...where])).rejects.toMatchObject({
      code: "INDEX_BROKEN",
    });
  }, routes);
});

test("a domain that is not served, and a fault of the program, keep their code", async () => {
  await withAgent(async (where) => {
    await expect(run(cacheCommand, ["clear", "b.example", "x", ...where])).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: 'this agent serves no domain "b.example"',
    });
  });
  const refusing = {
    "cache-clear": () => {
      throw new AccelError("PATTERN_INVALID", "no such column: colour");
    },
  };
  await withAgent(async (where) => {
    await expect(
      run(cacheCommand, ["clear", "a.example", "colour:red", ...where]),
    ).rejects.toMatchObject({
      code: "PATTERN_INVALID",
      message: "no such column: colour",
    });
  }, refusing);
});

test("status for a person, and as JSON", async () => {
  const warnings = [
    {
      code: "spool_slow",
      severity: "warning" as const,
      text: "5 s",
      since: "noon",
      not_before: "noon",
      hint: "Look at the disk.",
    },
    {
      code: "index_broken",
      severity: "error" as const,
      text: "set aside",
      since: "one",
      not_before: "one",
      hint: "Wait.",
    },
  ];
  const routes = controlRoutes({ ...fakePorts([]), status: async () => statusOf({ warnings }) });
  await withAgent(async (where) => {
    const text = await run(agentStatusCommand, where);
    expect(text).toMatch(
      /^accel-agent 1\.2\.3: ready, up for \d+ d \d+ h\nsite +0123456789abcdef, 2 workers, http 0\.0\.0\.0:80, no HTTPS, state 7\n/,
    );
    // The worst comes first.
    expect(text).toContain(
      "warnings:\n  index_broken (error) since one: set aside\n    Wait.\n  spool_slow (warning) since noon: 5 s\n    Look at the disk.\nlink ",
    );
    expect(text).toMatch(
      /\ndomain +hosts +version +standing +for +files +bots +unreviewed bots\na\.example +2 +spring +in force +\d+ d \d+ h +12 +enforce +blocked by default\n/,
    );
    expect(text).not.toContain("\u001B");
    const coloured = await run(agentStatusCommand, where, true);
    expect(coloured).toContain("\u001B[33mspool_slow\u001B[0m");
    expect(coloured).toContain("\u001B[31mindex_broken\u001B[0m");
    expect(JSON.parse(await run(agentStatusCommand, ["--json", ...where]))).toEqual(
      statusOf({ warnings }),
    );
  }, routes);
  await withAgent(async (where) => {
    expect(await run(agentStatusCommand, where)).toMatch(/\nwarnings: none\nlink +connected/);
    await expect(run(agentStatusCommand, ["--watch", "--json", ...where])).rejects.toMatchObject({
      code: "USAGE",
    });
  });
});

test("facts are aligned, nested, numbered; nothing is said as nothing", async () => {
  await withAgent(async (where) => {
    expect(await run(cacheCommand, ["search", "a.example", "x", ...where])).toBe(
      "0:\n  path  /a\n  kind  generated\n1:\n  path  /b\n  kind  static\n",
    );
  });
});

test("the state directory is found through the settings file", async () => {
  using config = tempDir();
  await withAgent(async ([, stateDir], calls) => {
    const path = join(config.path, "agent.yaml");
    writeFileSync(path, `name16: 0123456789abcdef\nstate_dir: ${stateDir}\n`);
    await run(cacheCommand, ["stats", "--config", path]);
    expect(calls).toEqual([["cacheStats"]]);
    // It says neither where the agent is nor whose file it is: the plain agent of this host may be another one.
    writeFileSync(path, "state_dir: [\n");
    await expect(run(cacheCommand, ["stats", "--config", path])).rejects.toMatchObject({
      code: "SETTINGS_INVALID",
    });
    await expect(
      run(cacheCommand, ["stats", "--config", "/nowhere/agent.yaml"]),
    ).rejects.toMatchObject({
      code: "SETTINGS_INVALID",
      message: expect.stringContaining("/nowhere/agent.yaml"),
    });
  });
});

test("a settings file that is broken is told in one line, and the agent that runs is asked", async () => {
  using config = tempDir();
  await withAgent(async ([, stateDir], calls) => {
    const path = join(config.path, "agent.yaml");
    writeFileSync(path, `state_dir: ${stateDir}\nspool: [\n`);
    const said: string[] = [];
    using _ = vi
      .spyOn(process.stderr, "write")
      .mockImplementation((text) => said.push(String(text)) > 0);
    await run(cacheCommand, ["stats", "--config", path]);
    await run(logsCommand, ["tail", "--config", path]);
    expect(calls).toMatchObject([["cacheStats"], ["logsTail", {}]]);
    const told = expect.stringMatching(
      /^accel-agent: the settings file \/.*agent\.yaml is no YAML: .* at line \d.*\. A program that runs goes on with what it read before\.\n$/,
    );
    expect(said).toEqual([told, told]);
  });
});

test("a program that does not run is told by the socket's path", async () => {
  await expect(run(agentStatusCommand, ["--state-dir", "/nowhere"])).rejects.toMatchObject({
    code: "CONTROL_UNREACHABLE",
    message: expect.stringContaining("/nowhere/control.sock"),
  });
});

test("the socket lies in the state directory that is named, or that the settings name", () => {
  using dir = tempDir();
  const config = join(dir.path, "agent.yaml");
  writeFileSync(config, "name16: 0123456789abcdef\nstate_dir: /srv/accel\n");
  expect(socketPath("accel-agent", { config })).toBe("/srv/accel/control.sock");
  expect(socketPath("accel-agent", { config, "state-dir": "/other" })).toBe("/other/control.sock");
  writeFileSync(config, "name16: 0123456789abcdef\n");
  expect(socketPath("accel-agent", { config })).toBe("/var/lib/accel-agent/control.sock");
});

test("status says of a link without contact when its head was told", async () => {
  const head_told_at = "2031-05-06T07:08:10.000Z";
  const statusWith = async (link: object): Promise<string> => {
    let text = "";
    const status = async () => ({ ...statusOf({}), parts: { link } });
    const routes = controlRoutes({ ...fakePorts([]), status });
    await withAgent(async (where) => void (text = await run(agentStatusCommand, where)), routes);
    return text;
  };
  const known = { state: "disconnected", head_seq: 7, head_told_at, lag: 2 };
  expect(await statusWith(known)).toMatch(/journal – of 7, 2 behind, when last told, 0 s ago\n/);
  const unknown = { state: "disconnected", head_seq: null, head_told_at: null, lag: null };
  expect(await statusWith({ ...unknown, applied_seq: 4 })).toContain(
    "journal 4; how far central's has come is not known yet\n",
  );
  expect(await statusWith({ ...known, state: "connected" })).toMatch(/journal – of 7, 2 behind\n/);
  const next_try_at = new Date(Date.now() + 3_600_000).toISOString();
  const hour = /disconnected; next try in (?:1 h|1 h 0 min|59 min[ \d s]*)\n/;
  expect(await statusWith({ ...known, next_try_at })).toMatch(hour);
  const polling = { ...known, state: "polling", next_try_at };
  expect(await statusWith(polling)).toMatch(/polling; a channel is tried again in \d/);
  expect(await statusWith({ ...known, next_try_at: "2020-01-15T08:00:00.000Z" })).toMatch(
    /; next try in 0 s\n/,
  );
});

test("an empty fact is a dash, as one that is not there", async () => {
  const found = { matched: 1, samples: [{ path: "/a", query: "", coding: null }] };
  const routes = controlRoutes({ ...fakePorts([]), cacheSearch: async () => found });
  await withAgent(async (where) => {
    const text = await run(cacheCommand, ["search", "a.example", "path:a", ...where]);
    expect(text).toMatch(/ query +–\n +coding +–\n/);
  }, routes);
});
