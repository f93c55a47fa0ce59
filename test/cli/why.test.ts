// `accel-agent why` as a person and as a script read it.

import { expect, test } from "vitest";
import { whyCommand } from "../../src/cli/agent-why.ts";
import { agentBotsCommand } from "../../src/cli/agent-bots.ts";
import { run, whyAnswer, withAgent } from "./command-rig.ts";
import { addressAnswer, checkedAnswer, decidedAnswer, listedAnswer } from "./visitor-answers.ts";

test("why, for a person", async () => {
  await withAgent(async (where) => {
    expect(await run(whyCommand, ["a.example/a", ...where])).toBe(
      [
        "http://a.example/a",
        "  a plain GET  generated, cache: miss (from the backend)",
        "  cached now: not cached",
        "  what went:",
        "    2031-05-06T07:08:10.000Z  text/html  cleared",
        "      by clear 7 (c7) at 2031-05-06T07:08:10.000Z, given by central, journal entry 12, of a.example: path:a  mime:html",
        "  clears that match it:",
        "    clear 7 (c7) at 2031-05-06T07:08:10.000Z, given by central, journal entry 12, of a.example: path:a  mime:html",
        "  clears that do not: none",
        "",
      ].join("\n"),
    );
    expect(JSON.parse(await run(whyCommand, ["a.example/a", "--json", ...where]))).toEqual(
      whyAnswer,
    );
  });
});

const checkedLines = [
  "192.0.2.1",
  '  user agent "curl/8", which claims to be the bot curl',
  "  www.a.example: blocked with 403 (bad-set), mode enforce",
  "    why    192.0.2.0/24 is evil's in the bad set of a.example, version 3",
  "    set    bad of a.example, version 3 since 2031-05-06T07:09:00.000Z; 192.0.2.0/24 is in it since 2031-05-06T07:08:09.000Z",
  "    what would change it:",
  "      removing 192.0.2.0/24",
  "      an allow_access pair",
];

test.each([
  [agentBotsCommand, ["check", "192.0.2.1"], checkedAnswer, checkedLines],
  [
    whyCommand,
    ["192.0.2.1"],
    addressAnswer,
    [
      ...checkedLines,
      "  decisions about it: 12, the newest 1:",
      // What a visitor calls itself must not reach the terminal as a command.
      '    2031-05-06T07:10:00.000Z  0123456789abcdef  www.a.example  block bad-set  evil  "curl/8 \uFFFD2J"',
    ],
  ],
  [
    whyCommand,
    ["0123456789abcdef"],
    decidedAnswer,
    [
      "decision 0123456789abcdef",
      "  2031-05-06T07:10:00.000Z, www.a.example",
      '  address 192.0.2.1, user agent "curl/8 \uFFFD2J"',
      "  then: blocked with 403 (bad-set)",
      "    why    192.0.2.0/24 is evil's in the bad set of a.example, version 3",
      "    set    bad of a.example, version 3, now 4 since 2031-05-06T07:09:00.000Z; no element of this bot holds the address now",
      "    what would change it:",
      "      removing 192.0.2.0/24",
      "      an allow_access pair",
      "  now: allowed (not-a-bot), mode enforce",
      "    the address is in no set and the user agent is no bot's",
    ],
  ],
  [
    agentBotsCommand,
    ["list"],
    listedAnswer,
    [
      "sets:",
      "  bad  a.example  version 3, 7 elements, changed 2031-05-06T07:09:00.000Z, in force",
      "  vip  a.example  version 9, 1 element, changed before this was noted, version 8 in force",
      "hosts:",
      "  www.a.example  mode monitor, unknown bots allowed by the policy of a.example, pairs: 1 allowed, 0 denied",
      "policies changed 2031-05-06T07:00:00.000Z",
    ],
  ],
])("%# of visitors, for a person and for a script", async (command, args, facts, lines) => {
  await withAgent(async (where) => {
    expect(await run(command, [...args, ...where])).toBe(`${lines.join("\n")}\n`);
    expect(JSON.parse(await run(command, [...args, "--json", ...where]))).toEqual(facts);
  });
});

/** A stored answer as the agent tells of it. */
const entry = {
  id: 5,
  kind: "generated",
  status: 200,
  mime: "text/html",
  coding: null,
  size: 10,
  vary: null,
  stored_at: "2031-05-06T07:08:09.000Z",
  fresh_until: "2031-05-06T08:08:09.000Z",
  is_fresh: true,
  source_no: 3,
  servable: true,
  of_another_rule: false,
};

test("an entry that the origin must confirm first says so", async () => {
  const cached = [
    { ...entry, confirmed: false },
    { ...entry, rule_media_types: ["text/*"] },
  ];
  const routes = { why: async () => ({ ...whyAnswer, cached }) };
  await withAgent(async (where) => {
    const told = await run(whyCommand, ["a.example/a", ...where]);
    expect(told).toContain("10 bytes, fresh, not used before the origin confirms it\n");
    expect(told).toContain("10 bytes, fresh\n");
    expect(told.match(/^ +under the rule for answers of text\/\*$/gm)?.length).toBe(1);
  }, routes);
});

test("for which requests an answer is: scheme and port are told as what they are", async () => {
  const of = async (vary: object | null): Promise<readonly string[]> => {
    const routes = { why: async () => ({ ...whyAnswer, cached: [{ ...entry, vary }] }) };
    let told = "";
    await withAgent(async (where) => {
      told = await run(whyCommand, ["a.example/a", ...where]);
    }, routes);
    return [...told.matchAll(/^ +(for requests.*)$/gm)].map(([, text = ""]) => text);
  };
  expect(await of(null)).toEqual([]);
  expect(await of({})).toEqual([]);
  expect(await of({ "x-forwarded-proto": "https" })).toEqual(["for requests by https"]);
  expect(await of({ "x-forwarded-proto": "http:20081", "accept-language": "de" })).toEqual([
    "for requests by http at port 20081 with accept-language: de",
  ]);
  expect(await of({ "accept-language": "de", cookie: "a=1" })).toEqual([
    "for requests with accept-language: de; cookie: a=1",
  ]);
});

test("a soft clear and what it made stale, for a person", async () => {
  const at = "2031-05-06T07:30:00.000Z";
  const entry = {
    id: 5,
    kind: "generated",
    status: 200,
    mime: "text/html",
    coding: null,
    size: 10,
    vary: null,
    stored_at: "2031-05-06T07:08:09.000Z",
    fresh_until: at,
    is_fresh: false,
    softly_cleared_at: at,
    source_no: 3,
    servable: true,
    of_another_rule: false,
  };
  const by = { by: "central", of: "a.example", patterns: ["path:a"], matched: 1 };
  const clear = { clear_no: 4, clear_id: "c", at, soft: true, ...by };
  const clears = { matching: [clear], not_matching: [{ ...clear, soft: false }], mime_known: true };
  const routes = { why: async () => ({ ...whyAnswer, cached: [entry], clears }) };
  await withAgent(async (where) => {
    const told = await run(whyCommand, ["a.example/a", ...where]);
    expect(told).toContain(`10 bytes, stale, softly cleared ${at}\n`);
    expect(told).toContain(`\n    soft clear 4 (c) at ${at}`);
    expect(told).toContain(`\n    clear 4 (c) at ${at}`);
  }, routes);
});

test("rules by media type, for a person", async () => {
  const told = { media_type: ["image/*", "text/css"], rule_headers: { response: ["+X-A"], request: [] } };
  const routes = { why: async () => ({ ...whyAnswer, rules_by_media_type: [told, { media_type: ["font/*"] }] }) };
  await withAgent(async (where) => {
    const lines = (await run(whyCommand, ["a.example/a", ...where])).split("\n");
    expect(lines.slice(2, 6)).toEqual([
      "  answers of image/*, text/css have a rule of their own",
      "    the rule changes headers of the answer: +X-A",
      "  answers of font/* have a rule of their own",
      "  cached now: not cached",
    ]);
  }, routes);
}); // prettier-ignore

test("the forms that a picture may have, for a person", async () => {
  const entry = {
    id: 5,
    kind: "generated",
    status: 200,
    mime: "image/png",
    coding: null,
    size: 10_000,
    vary: null,
    stored_at: "2031-05-06T07:08:09.000Z",
    fresh_until: "2031-05-06T08:08:09.000Z",
    is_fresh: true,
    source_no: 3,
    servable: true,
    of_another_rule: false,
  };
  const cached = [
    { ...entry, image_variants: "avif, webp; widths 640" },
    { ...entry, id: 6, coding: "avif-640", size: 900 },
  ];
  const routes = { why: async () => ({ ...whyAnswer, picture_width: 640, cached }) };
  await withAgent(async (where) => {
    const told = await run(whyCommand, ["a.example/a.png?width=640", ...where]);
    expect(told).toContain("  a picture, 640 pixels wide: cached as the URL without the width\n");
    expect(told).toContain("      image variants: avif, webp; widths 640\n");
    expect(told).toContain("entry 6  generated 200 image/png avif-640, 900 bytes, fresh\n");
    expect(told.match(/image variants/g)).toHaveLength(1);
  }, routes);
});
