// A control socket with the agent's own routes behind it and ports that note what reached them; commands are run as from a shell.

import { join } from "node:path";
import { controlRoutes, type ControlPorts } from "../../src/agent/admin/control-routes.ts";
import { startControlSocket, type ControlRoutes } from "../../src/base/control-socket.ts";
import type { Command, CommandContext } from "../../src/base/command.ts";
import { statusOf } from "../agent/admin/status-of.ts";
import { requestRecord } from "../support/request-records.ts";
import { tempDir } from "../support/temp-dir.ts";
import { addressAnswer, checkedAnswer, decidedAnswer, listedAnswer } from "./visitor-answers.ts";

export const contextOf = (args: readonly string[], stop: AbortSignal): CommandContext => ({
  version: "0.0.0",
  program: "/nowhere/main.ts",
  args,
  out: () => undefined,
  colour: false,
  env: {},
  stop,
  onReload: () => undefined,
});

export async function run(
  command: Command,
  args: readonly string[],
  colour = false,
  stop = new AbortController().signal,
): Promise<string> {
  let printed = "";
  const out = (text: string): void => void (printed += text);
  await command.run({ ...contextOf(args, stop), colour, out });
  return printed;
}

const someClear = {
  clear_no: 7,
  clear_id: "c7",
  at: "2031-05-06T07:08:10.000Z",
  by: "central, journal entry 12",
  of: "a.example",
  patterns: ["path:a", "mime:html"],
  matched: 3,
};
export const whyAnswer = {
  url: "http://a.example/a",
  domain: "a.example",
  host: "a.example",
  a_plain_get: { serves: "generated", cache: "miss", text: "from the backend" },
  cached: [],
  departed: [
    {
      at: "2031-05-06T07:08:10.000Z",
      kind: "generated",
      mime: "text/html",
      reason: "cleared",
      clear: someClear,
    },
  ],
  clears: { matching: [someClear], not_matching: [], mime_known: true },
  newest_clear_no: 7,
  known_since: null,
};

const backlogAnswer = {
  accepted: 10,
  committed: 4,
  spooled: 5,
  in_memory: 0,
  dropped: { crash: 1 },
  shipping: "stuck",
  lanes_total: 1,
  lanes: [
    {
      lane: "0000000000000001/1",
      live: true,
      accepted: 10,
      committed: 4,
      spooled: 5,
      in_memory: 0,
      dropped: 1,
      bytes: 4_096,
      oldest_s: 90,
      in_flight: true,
      answer: "503: away",
      answered_at: "2031-05-06T07:08:10.000Z",
    },
  ],
};

const version = (name: string, id: number) => ({
  viewset_name: name,
  viewset_id: id,
  manifest: String(id).repeat(64),
});
const at = "2031-05-06T07:08:10.000Z";
const releasesAnswer = {
  domain: "a.example",
  in_force: { ...version("one\u001b[2J", 1), since: at },
  wanted: version("three", 3),
  standing: "quarantined",
  pinned: { ...version("one", 1), since: at },
  on_trial_until: at,
  kept: [{ ...version("one", 1), activated_at: at, outcome: "in force" }],
  quarantined: [{ ...version("three", 3), at, code: "VIEWSET_PROBE_FAILED", reason: "EIO" }],
};

/** What reached the ports, and what they answer. */
export function fakePorts(calls: unknown[]): ControlPorts {
  const port =
    (name: string, answer: unknown = { called: name }) =>
    async (request?: unknown) => {
      calls.push(request === undefined ? [name] : [name, request]);
      return answer;
    };
  return {
    status: async () => statusOf({}),
    netcheck: port("netcheck"),
    cacheSearch: port("cacheSearch", [
      { path: "/a", kind: "generated" },
      { path: "/b", kind: "static" },
    ]),
    cacheClear: port("cacheClear"),
    cacheStats: port("cacheStats"),
    cacheDryRun: port("cacheDryRun"),
    cacheCheck: port("cacheCheck", { ok: true, problems: [] }),
    why: async (url, cookie) => {
      calls.push(["why", url, cookie]);
      const { a_plain_get: met } = whyAnswer;
      return cookie === null
        ? whyAnswer
        : { ...whyAnswer, a_plain_get: { ...met, cookies: "sid" } };
    },
    whyAddress: port("whyAddress", addressAnswer),
    whyDecision: port("whyDecision", decidedAnswer),
    botsCheck: port("botsCheck", checkedAnswer),
    botsList: port("botsList", listedAnswer),
    viewsetCheck: port("viewsetCheck", {
      schedule: "off",
      state: "running",
      pass: null,
      last: null,
    }),
    viewsetList: port("viewsetList", [releasesAnswer]),
    viewsetRollback: async (back) => port("viewsetRollback", releasesAnswer)(back),
    viewsetRetry: async (domain) => port("viewsetRetry", releasesAnswer)(domain),
    logsBacklog: port("logsBacklog", backlogAnswer),
    logsTail: async function* tail(query) {
      calls.push(["logsTail", query]);
      yield { following: query.follow };
      yield { record: requestRecord(7, { response_status: 503, user_agent: "curl\u001b[2J" }) };
      yield { missed: 12 };
    },
    defaultDomain: "a.example",
    mainDomainOf: (host) => (host.endsWith("a.example") ? "a.example" : undefined),
  };
}

export async function withAgent(
  action: (args: readonly string[], calls: unknown[]) => Promise<void>,
  routes?: ControlRoutes,
): Promise<void> {
  using dir = tempDir();
  const calls: unknown[] = [];
  await using _ = await startControlSocket(
    join(dir.path, "control.sock"),
    routes ?? controlRoutes(fakePorts(calls)),
  );
  await action(["--state-dir", dir.path], calls);
}
