// `accel-agent viewset`: what reaches the agent, and what a person and a program read.

import { expect, test } from "vitest";
import { viewsetCommand } from "../../src/cli/agent-viewset.ts";
import { run, withAgent } from "./command-rig.ts";

test.each([
  ["list", ["viewsetList"]],
  ["list A.example", ["viewsetList", "a.example"]],
  ["rollback a.example", ["viewsetRollback", { domain: "a.example" }]],
  ["rollback a.example v2", ["viewsetRollback", { domain: "a.example", version: "v2" }]],
  ["retry a.example", ["viewsetRetry", "a.example"]],
  ["check", ["viewsetCheck"]],
] as const)("%s", async (args, call) => {
  await withAgent(async (where, calls) => {
    await run(viewsetCommand, [...args.split(" "), ...where]);
    expect(calls).toMatchObject([call]);
  });
});

test.each([
  [[], "USAGE", "viewset: one of list, rollback, retry"],
  [["rollback"], "USAGE", "viewset rollback takes a domain"],
  [["check", "a.example"], "USAGE", "viewset check takes no domain: it looks at all of them"],
  [["retry", "a.example", "v2"], "USAGE", "viewset retry takes no version"],
  [["list", "b.org"], "NOT_FOUND", 'this agent serves no domain "b.org"'],
  [["rollback", "sub.a.example"], "USAGE", "its versions are those of a.example"],
])("%j: %s", async (args, code, message) => {
  await withAgent(async (where, calls) => {
    await expect(run(viewsetCommand, [...args, ...where])).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
    });
    expect(calls).toEqual([]);
  });
});

test("viewset prints what is in force, on trial, pinned, wanted, kept and quarantined, and no control characters", async () => {
  await withAgent(async (where) => {
    const printed = await run(viewsetCommand, ["list", ...where]);
    expect(printed.split("\n")).toEqual([
      "a.example: one?[2J (1, 111111111111) is in force",
      "  on trial until 2031-05-06T07:08:10.000Z",
      "  pinned to it by an operator since 2031-05-06T07:08:10.000Z",
      "  central wants three (3, 333333333333): quarantined",
      "  kept:",
      "    one (1, 111111111111)  2031-05-06T07:08:10.000Z  in force",
      "  quarantined:",
      "    three (3, 333333333333)  2031-05-06T07:08:10.000Z  EIO",
      "",
    ]);
    expect(await run(viewsetCommand, ["rollback", "a.example", ...where])).toBe(printed);
    const json = JSON.parse(await run(viewsetCommand, ["list", "--json", ...where]));
    expect(json).toMatchObject([{ standing: "quarantined", kept: [{ viewset_id: 1 }] }]);
  });
});
